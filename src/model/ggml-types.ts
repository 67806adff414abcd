import { type TensorType, tensorTypes } from "./weight-matrix.ts";

/** How a ggml type packs weights: `elements` of them in `bytes`. */
export interface BlockFormat {
	readonly name: string;
	readonly elements: number;
	readonly bytes: number;
}

/** Every ggml type by its number, so that a file with types Kvasir cannot run can still be listed (ggml.h, ggml-common.h). */
const formats: ReadonlyMap<number, BlockFormat> = new Map(
	(
		[
			[0, "F32", 1, 4],
			[1, "F16", 1, 2],
			[2, "Q4_0", 32, 18],
			[3, "Q4_1", 32, 20],
			[6, "Q5_0", 32, 22],
			[7, "Q5_1", 32, 24],
			[8, "Q8_0", 32, 34],
			[9, "Q8_1", 32, 36],
			[10, "Q2_K", 256, 84],
			[11, "Q3_K", 256, 110],
			[12, "Q4_K", 256, 144],
			[13, "Q5_K", 256, 176],
			[14, "Q6_K", 256, 210],
			[15, "Q8_K", 256, 292],
			[16, "IQ2_XXS", 256, 66],
			[17, "IQ2_XS", 256, 74],
			[18, "IQ3_XXS", 256, 98],
			[19, "IQ1_S", 256, 50],
			[20, "IQ4_NL", 32, 18],
			[21, "IQ3_S", 256, 110],
			[22, "IQ2_S", 256, 82],
			[23, "IQ4_XS", 256, 136],
			[24, "I8", 1, 1],
			[25, "I16", 1, 2],
			[26, "I32", 1, 4],
			[27, "I64", 1, 8],
			[28, "F64", 1, 8],
			[29, "IQ1_M", 256, 56],
			[30, "BF16", 1, 2],
			[34, "TQ1_0", 256, 54],
			[35, "TQ2_0", 256, 66],
			[39, "MXFP4", 32, 17],
		] as const
	).map(([id, name, elements, bytes]) => [id, { name, elements, bytes }]),
);

/** The format of a ggml type number; undefined for numbers newer than this table. */
export function blockFormatOf(ggmlType: number): BlockFormat | undefined {
	return formats.get(ggmlType);
}

/** The name of a ggml type number, such as `Q4_K`, or `type 77`. */
export function typeNameOf(ggmlType: number): string {
	return formats.get(ggmlType)?.name ?? `type ${ggmlType}`;
}

/** The type Kvasir computes with, or undefined for the others. */
export function tensorTypeOf(ggmlType: number): TensorType | undefined {
	const name = formats.get(ggmlType)?.name;
	return name !== undefined && name in tensorTypes ? (name as TensorType) : undefined;
}

/** The block format of a type Kvasir computes with. */
export function formatOf(type: TensorType): BlockFormat {
	return formats.get(tensorTypes[type])!;
}

/** Bytes of one row of `inputs` weights; NaN when `inputs` is no multiple of the block. */
export function rowBytesOf(type: TensorType, inputs: number): number {
	const { elements, bytes } = formatOf(type);
	return inputs % elements === 0 ? (inputs / elements) * bytes : Number.NaN;
}
