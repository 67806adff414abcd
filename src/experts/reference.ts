import { f16ToF32 } from "../model/half.ts";
import type { ExpertWeights, TensorType, WeightMatrix } from "../model/weight-matrix.ts";

// canonical-1 in plain loops: the definition of docs/numerics.md in code, written to be read, not to be fast.
// Every kernel must equal this file bit for bit. `r32` marks each rounding to binary32; integers stay below 2^31,
// so that sums of them are exact in a double.

const r32 = Math.fround;

/** The integer nearest to `v`, ties to even, for |v| < 2^22 (numerics.md section 2). */
const nearestEven = (v: number): number => r32(r32(v + 12582912) - 12582912);

/** A row cut into activation blocks of 256: 14-bit integers and one scale a block. */
export interface QuantisedRow {
	readonly q: Int16Array;
	readonly scales: Float32Array;
}

/** Cuts a finite row of any length into activation blocks (numerics.md, "Activation blocks"). */
export function quantiseRow(row: Float32Array): QuantisedRow {
	const q = new Int16Array(row.length);
	const scales = new Float32Array(Math.ceil(row.length / 256));
	for (let block = 0; block < scales.length; block++) {
		const end = Math.min(row.length, block * 256 + 256);
		let m = 0;
		for (let i = block * 256; i < end; i++) m = Math.max(m, Math.abs(row[i]!));
		if (m < 2 ** -64) continue;
		const inverse = r32(8191 / m);
		for (let i = block * 256; i < end; i++) q[i] = nearestEven(r32(row[i]! * inverse));
		scales[block] = r32(m / 8191);
	}
	return { q, scales };
}

/** One weight row (its GGUF bytes) times one quantised row (numerics.md, "Dot product"). */
export type QuantisedDot = (weights: DataView, row: QuantisedRow) => number;

const half = (view: DataView, at: number): number => f16ToF32(view.getUint16(at, true));

/** The 6-bit scale and min of sub-block j of a K-quant block whose 12 packed bytes start at `at` (ggml: get_scale_min_k4). */
function scaleAndMin(view: DataView, at: number, j: number): [scale: number, min: number] {
	const byte = (i: number): number => view.getUint8(at + i);
	if (j < 4) return [byte(j) & 63, byte(j + 4) & 63];
	return [(byte(j + 4) & 15) | ((byte(j - 4) >> 6) << 4), (byte(j + 4) >> 4) | ((byte(j) >> 6) << 4)];
}

/** Q4_K: 256 weights in 144 bytes: d, dmin, 12 bytes of scales, 128 bytes of nibbles. */
const dotQ4K: QuantisedDot = (view, { q, scales }) => {
	let acc = 0;
	for (let b = 0; b < scales.length; b++) {
		const at = b * 144;
		let [sum, mins] = [0, 0];
		for (let j = 0; j < 8; j++) {
			const [scale, min] = scaleAndMin(view, at + 4, j);
			for (let i = 0; i < 32; i++) {
				const w = (view.getUint8(at + 16 + (j >> 1) * 32 + i) >> ((j & 1) * 4)) & 15;
				sum += scale * w * q[b * 256 + j * 32 + i]!;
				mins += min * q[b * 256 + j * 32 + i]!;
			}
		}
		const t = r32(r32(half(view, at) * r32(sum)) - r32(half(view, at + 2) * r32(mins)));
		acc = r32(acc + r32(scales[b]! * t));
	}
	return acc;
};

/** Q5_K: 256 weights in 176 bytes: d, dmin, 12 bytes of scales, 32 bytes of fifth bits, 128 bytes of nibbles; two integer sums. */
const dotQ5K: QuantisedDot = (view, { q, scales }) => {
	let acc = 0;
	for (let b = 0; b < scales.length; b++) {
		const at = b * 176;
		const sums = [0, 0];
		let mins = 0;
		for (let j = 0; j < 8; j++) {
			const [scale, min] = scaleAndMin(view, at + 4, j);
			for (let i = 0; i < 32; i++) {
				const nibble = (view.getUint8(at + 48 + (j >> 1) * 32 + i) >> ((j & 1) * 4)) & 15;
				const w = nibble | (((view.getUint8(at + 16 + i) >> j) & 1) << 4);
				sums[j >> 2]! += scale * w * q[b * 256 + j * 32 + i]!;
				mins += min * q[b * 256 + j * 32 + i]!;
			}
		}
		const d = half(view, at);
		const u = r32(r32(d * r32(sums[0]!)) + r32(d * r32(sums[1]!)));
		const t = r32(u - r32(half(view, at + 2) * r32(mins)));
		acc = r32(acc + r32(scales[b]! * t));
	}
	return acc;
};

/** Q6_K: 256 weights in 210 bytes: 128 bytes of low nibbles, 64 of high pairs, 16 signed scales, d; four integer sums. */
const dotQ6K: QuantisedDot = (view, { q, scales }) => {
	let acc = 0;
	for (let b = 0; b < scales.length; b++) {
		const at = b * 210;
		const d = half(view, at + 208);
		let u = 0;
		for (let quarter = 0; quarter < 4; quarter++) {
			let sum = 0;
			for (let k = quarter * 64; k < quarter * 64 + 64; k++) {
				const [h, column, i] = [k >> 7, (k >> 5) & 3, k & 31];
				const low = (view.getUint8(at + h * 64 + (column & 1) * 32 + i) >> ((column >> 1) * 4)) & 15;
				const high = (view.getUint8(at + 128 + h * 32 + i) >> (column * 2)) & 3;
				sum += view.getInt8(at + 192 + (k >> 4)) * ((low | (high << 4)) - 32) * q[b * 256 + k]!;
			}
			u = quarter === 0 ? r32(d * r32(sum)) : r32(u + r32(d * r32(sum)));
		}
		acc = r32(acc + r32(scales[b]! * u));
	}
	return acc;
};

/** Q8_0: 32 weights in 34 bytes: d, 32 signed bytes. */
const dotQ80: QuantisedDot = (view, { q, scales }) => {
	let acc = 0;
	for (let b = 0; b < q.length / 32; b++) {
		let sum = 0;
		for (let i = 0; i < 32; i++) sum += view.getInt8(b * 34 + 2 + i) * q[b * 32 + i]!;
		const scale = r32(half(view, b * 34) * scales[b >> 3]!);
		acc = r32(acc + r32(scale * r32(sum)));
	}
	return acc;
};

/** The weight types that read quantised rows, with their dot products. */
const quantisedDots: Partial<Record<TensorType, QuantisedDot>> = {
	Q4_K: dotQ4K,
	Q5_K: dotQ5K,
	Q6_K: dotQ6K,
	Q8_0: dotQ80,
};

const bits = new DataView(new ArrayBuffer(4));

/** The binary32 value of bfloat16 bits. */
function bf16ToF32(value: number): number {
	bits.setUint32(0, value << 16);
	return bits.getFloat32(0);
}

/** The weights that are read exactly, widened to binary32. */
const widenWeight: Partial<Record<TensorType, (weights: DataView, i: number) => number>> = {
	F32: (view, i) => view.getFloat32(i * 4, true),
	F16: (view, i) => half(view, i * 2),
	BF16: (view, i) => bf16ToF32(view.getUint16(i * 2, true)),
};

/** Float weights times a row as it is: four lanes, i mod 4 (numerics.md, the row "F32, F16, BF16"). */
function dotFloat(weight: (i: number) => number, row: Float32Array): number {
	const lanes: [number, number, number, number] = [0, 0, 0, 0];
	row.forEach((x, i) => {
		lanes[i % 4] = r32(lanes[i % 4]! + r32(weight(i) * x));
	});
	return r32(r32(lanes[0] + lanes[1]) + r32(lanes[2] + lanes[3]));
}

/** Wx: (outputs) from a row of (inputs). */
export function multiplyRow(matrix: WeightMatrix, row: Float32Array): Float32Array {
	const dot = quantisedDots[matrix.type];
	const quantised = dot && quantiseRow(row);
	return weightRows(matrix).map(quantised ? (view) => dot(view, quantised) : (view) => floatDot(matrix, view, row));
}

/** Wx from a row that was quantised elsewhere (dtype q14); block-quantised weights only. */
function multiplyQuantisedRow(matrix: WeightMatrix, row: QuantisedRow): Float32Array {
	return weightRows(matrix).map((view) => quantisedDots[matrix.type]!(view, row));
}

function floatDot(matrix: WeightMatrix, view: DataView, row: Float32Array): number {
	const widen = widenWeight[matrix.type]!;
	return dotFloat((i) => widen(view, i), row);
}

function weightRows({ bytes, outputs }: WeightMatrix): { map(dot: (view: DataView) => number): Float32Array } {
	const rowBytes = bytes.byteLength / outputs;
	const view = (o: number) => new DataView(bytes.buffer, bytes.byteOffset + o * rowBytes, rowBytes);
	return { map: (dot) => Float32Array.from({ length: outputs }, (_, o) => dot(view(o))) };
}

/** Cephes' expf coefficients, each rounded to binary32 (numerics.md, "Expert"). */
const exp32Coefficients = [
	1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
].map(r32);
/** The text's 1.44269504: the same binary32. */
const log2e32 = r32(Math.LOG2E);
const ln2Low32 = r32(-2.1219444e-4);

/** e^z in binary32 operations only (Cephes' expf without its fused steps). */
export function exp32(value: number): number {
	const z = Math.max(-87, Math.min(87, value));
	const n = nearestEven(r32(z * log2e32));
	const r = r32(r32(z - r32(n * 0.693359375)) - r32(n * ln2Low32));
	let p = exp32Coefficients[0]!;
	for (const c of exp32Coefficients.slice(1)) p = r32(r32(p * r) + c);
	const y = r32(r32(r32(p * r32(r * r)) + r) + 1);
	bits.setFloat32(0, y);
	bits.setInt32(0, bits.getInt32(0) + (n << 23));
	return bits.getFloat32(0);
}

/** v * sigmoid(v), as a division. */
export const silu = (v: number): number => r32(v / r32(1 + exp32(-v)));

/** y = Wdown (silu(Wgate x) * (Wup x)). */
export function expertRow({ gate, up, down }: ExpertWeights, row: Float32Array): Float32Array {
	return expertTail(down, multiplyRow(gate, row), multiplyRow(up, row));
}

/** The same for a row that came as q14. */
export function expertQuantisedRow({ gate, up, down }: ExpertWeights, row: QuantisedRow): Float32Array {
	return expertTail(down, multiplyQuantisedRow(gate, row), multiplyQuantisedRow(up, row));
}

function expertTail(down: WeightMatrix, g: Float32Array, u: Float32Array): Float32Array {
	return multiplyRow(
		down,
		g.map((value, i) => r32(silu(value) * u[i]!)),
	);
}

/** The weighted sum of partials in the router's rank order (numerics.md, "Combine"). */
export function combine(partials: readonly Float32Array[], weights: Float32Array): Float32Array {
	const sum = new Float32Array(partials[0]!.length);
	partials.forEach((y, rank) => {
		for (let i = 0; i < sum.length; i++) sum[i] = r32(sum[i]! + r32(weights[rank]! * y[i]!));
	});
	return sum;
}

/** 1/13!, 1/12!, ... 1/0!, each the nearest binary64 (factorials up to 13! are exact). */
const exp64Coefficients = Array.from({ length: 14 }, (_, i) => 1 / factorial(13 - i));

function factorial(n: number): number {
	return n < 2 ? 1 : n * factorial(n - 1);
}

/** e^z in binary64, the same bytes everywhere (Math.exp is not); error under 1 ulp (numerics.md, "Router"). */
export function exp64(value: number): number {
	const z = Math.max(-708, Math.min(708, value));
	const n = z * Math.LOG2E + 6755399441055744 - 6755399441055744;
	const r = z - n * 0.6931471803691238 - n * 1.9082149292705877e-10;
	let p = exp64Coefficients[0]!;
	for (const c of exp64Coefficients.slice(1)) p = p * r + c;
	return p * 2 ** n;
}

/** The router's weights of the chosen experts, from their logits in rank order. */
export function routerWeights(logits: readonly number[] | Float32Array): Float32Array {
	const e = Array.from(logits, (logit) => exp64(logit - logits[0]!));
	const sum = e.reduce((total, value) => total + value, 0);
	return Float32Array.from(e, (value) => r32(value / sum));
}
