import type { ModelShape } from "./shape.ts";

/** A model whose dimensions are known without its file. */
export interface Geometry {
	/** What the command line calls it. */
	readonly name: string;
	readonly title: string;
	readonly shape: ModelShape;
}

/** The known members of the family (spec: qwen35moe.md section 1). */
export const geometries: readonly Geometry[] = [
	{ name: "122b", title: "Qwen3.5-122B-A10B", shape: familyShape(48, 3072, 32, 64, 1024) },
	{ name: "35b", title: "Qwen3.5-35B-A3B", shape: familyShape(40, 2048, 16, 32, 512) },
];

/** What differs between the family's members; the rest they share. */
function familyShape(
	layers: number,
	hidden: number,
	heads: number,
	valueHeads: number,
	expertWidth: number,
): ModelShape {
	return {
		layers,
		hidden,
		vocab: 248_320,
		contextLength: 262_144,
		fullAttention: Array.from({ length: layers }, (_, layer) => (layer + 1) % 4 === 0),
		attention: { heads, kvHeads: 2, headDim: 256, rotaryDims: 64, ropeTheta: 1e7 },
		deltaNet: { keyHeads: 16, valueHeads, headDim: 128, convKernel: 4 },
		experts: 256,
		topK: 8,
		expertWidth,
		sharedWidth: expertWidth,
		rmsEpsilon: Math.fround(1e-6),
	};
}

/** The known geometry of a name, such as `122b`. */
export function geometryNamed(name: string): Geometry | undefined {
	return geometries.find((geometry) => geometry.name === name);
}

/** The known geometry a model has, by the widths that tell the family's members apart; it may have fewer layers. */
export function geometryOf(shape: ModelShape): Geometry | undefined {
	return geometries.find(
		({ shape: known }) =>
			known.hidden === shape.hidden && known.experts === shape.experts && known.expertWidth === shape.expertWidth,
	);
}
