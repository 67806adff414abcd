import type { ExpertWeights } from "../model/weight-matrix.ts";

/** Activation rows as they came: plain, or already cut into canonical-1's activation blocks (dtype q14 of the wire). */
export type Rows =
	| { readonly dtype: "f32"; readonly values: Float32Array }
	| { readonly dtype: "q14"; readonly q: Int16Array; readonly scales: Float32Array };

/** A set of (row, expert) pairs of one layer. Pairs are ordered by row, then by rank. */
export interface ExpertBatch {
	readonly layer: number;
	readonly rowCount: number;
	/** (rowCount, hidden) */
	readonly rows: Rows;
	/** Per pair: its row. */
	readonly rowIndex: Uint16Array;
	/** Per pair: its global expert id within the layer. */
	readonly expert: Uint16Array;
	/** Per pair, the router's weight: sum whole rows (mode 1). Absent: one vector per pair (mode 0). */
	readonly weight?: Float32Array;
}

/** How a device showed, before it was used, that it computes the class's bytes, and that it does so itself. */
export interface DeviceProof {
	/** `webgpu:ID`, and the name the driver gives it. */
	readonly id: string;
	readonly name: string;
	/** SHA-256 of the self-check's outputs; empty for a class without one. */
	readonly selfCheck: Uint8Array;
	readonly selfCheckMs: number;
	/** The same expert and rows: milliseconds on the device, and on one core of this machine's CPU. */
	readonly deviceMs: number;
	readonly cpuMs: number;
	readonly rows: number;
}

/**
 * Computes experts: pure functions `(row, expert) -> vector`, `y = Wdown (silu(Wgate x) * (Wup x))`.
 * An engine owns its memory and its threads; the caller's thread only waits.
 */
export interface ExpertEngine {
	/** The class of bits it promises: `canonical-1`, `f32`, `ort:<version>:<provider>:<device>`. */
	readonly engineClass: string;
	/** Engines on a device other than the CPU. */
	readonly proof?: DeviceProof;
	/** Bytes an expert takes once loaded. */
	readonly bytesHeld: number;
	/** Loads an expert; replaces one already there. Throws `bad_weights`, `unsupported_type`, `unsupported_shape`, `out_of_memory`. */
	load(layer: number, expert: number, weights: ExpertWeights): Promise<void>;
	unload(layer: number, expert: number): Promise<void>;
	has(layer: number, expert: number): boolean;
	/**
	 * (pairs, hidden) in the order of the pairs, or (rowCount, hidden) with `weight`.
	 * Throws `non_finite` (facts.where: row | result) or `engine_failed`. Every expert named must have been loaded.
	 */
	compute(batch: ExpertBatch): Promise<Float32Array>;
	close(): Promise<void>;
}
