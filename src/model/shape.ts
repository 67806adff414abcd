/** The dimensions of a qwen35moe model, read from its metadata (spec: qwen35moe.md section 1); never the fixture's numbers. */
export interface ModelShape {
	/** Layers that run: block_count minus the MTP blocks. */
	readonly layers: number;
	readonly hidden: number;
	readonly vocab: number;
	readonly contextLength: number;
	/** Per layer: full attention, or gated delta net. */
	readonly fullAttention: readonly boolean[];
	readonly attention: {
		readonly heads: number;
		readonly kvHeads: number;
		readonly headDim: number;
		readonly rotaryDims: number;
		readonly ropeTheta: number;
	};
	readonly deltaNet: {
		readonly keyHeads: number;
		readonly valueHeads: number;
		readonly headDim: number;
		readonly convKernel: number;
	};
	readonly experts: number;
	readonly topK: number;
	readonly expertWidth: number;
	readonly sharedWidth: number;
	readonly rmsEpsilon: number;
}
