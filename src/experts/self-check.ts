import { sha256 } from "../io/crypto.ts";
import { type TensorType, tensorTypes } from "../model/weight-matrix.ts";
import type { ExpertBatch, ExpertEngine } from "./engine.ts";
import { exp64 } from "./exp64.ts";
import { joinRows } from "./join-rows.ts";
import type { MatrixEngine } from "./matrices.ts";
import { quantiseRow } from "./reference.ts";
import { makeMatrix, makePlainRows, makeRow, smallScale, xorshift } from "./self-check-inputs.ts";

// The known-answer test of canonical-1 (docs/numerics.md): every engine of the class, on every machine, gives this digest.

/** SHA-256 of all outputs of the self-check. */
export const canonicalDigest = "d30932a200be0d576215ab6a92468e080064598d19b1aab84b40b9a692f25887";

/** What is checked: the engine's experts and matrices, and its exp32 (a silu test alone cannot see a wrong exp). */
export interface SelfCheckSubject
	extends Pick<ExpertEngine, "load" | "unload" | "compute">,
		Pick<MatrixEngine, "group"> {
	/** exp32 of each value. */
	exponentials(values: Float32Array): Promise<Float32Array>;
}

/** A layer no model has: the check leaves a working engine's experts alone. */
const layer = 0xffff;

const inputsOf: Record<TensorType, readonly number[]> = {
	Q4_K: [256, 768, 3072],
	Q5_K: [256, 768, 3072],
	Q6_K: [256, 768, 3072],
	Q8_0: [32, 64, 96, 288, 1024, 3072],
	F32: [36, 99, 3072],
	F16: [36, 99, 3072],
	BF16: [36, 99, 3072],
};

/** Runs the check. @returns the digest in hex; compare it with `canonicalDigest` */
export async function selfCheck(engine: SelfCheckSubject): Promise<string> {
	const outputs = [
		...(await matrixOutputs(engine)),
		...(await boundOutputs(engine)),
		...(await expertOutputs(engine)),
		await engine.exponentials(Float32Array.from({ length: 4096 }, (_, i) => (i - 2048) / 23)),
		Float64Array.from({ length: 4096 }, (_, i) => exp64((i - 3000) / 4)),
	];
	return Buffer.from(sha256(Buffer.concat(outputs.map(littleEndian)))).toString("hex");
}

/** Every machine Node runs on with WebAssembly SIMD is little-endian. */
const littleEndian = ({ buffer, byteOffset, byteLength }: Float32Array | Float64Array) =>
	new Uint8Array(buffer, byteOffset, byteLength);

/** Random weights of every type against troublesome rows: alone, and in batches with a rest. */
async function matrixOutputs(engine: SelfCheckSubject): Promise<Float32Array[]> {
	const next = xorshift(20251129);
	const outputs: Float32Array[] = [];
	for (const type of Object.keys(tensorTypes) as TensorType[]) {
		for (const inputs of inputsOf[type]) {
			const group = await engine.group("self-check", [makeMatrix(type, 13, inputs, next)]);
			for (const rows of [1, 2, 7]) {
				const x = joinRows(Array.from({ length: rows }, () => makeRow(inputs, next)));
				outputs.push(...(await group.multiply(x, rows)));
			}
			await group.close();
		}
	}
	return outputs;
}

/** The largest integers each type can reach, of both signs. */
async function boundOutputs(engine: SelfCheckSubject): Promise<Float32Array[]> {
	const next = xorshift(8191);
	const [most, least] = [8191, -8191].map((value) => new Float32Array(512).fill(value)) as [Float32Array, Float32Array];
	const rows = [most, least, most.map((value, i) => (i % 2 ? value : -value)), most, least];
	const outputs: Float32Array[] = [];
	for (const type of ["Q4_K", "Q5_K", "Q6_K", "Q8_0"] as const) {
		for (const byte of [0xff, 0x80, 0x7f, 0x00]) {
			const group = await engine.group("self-check", [makeMatrix(type, 8, 512, next, smallScale, byte)]);
			for (const count of [1, rows.length])
				outputs.push(...(await group.multiply(joinRows(rows.slice(0, count)), count)));
			await group.close();
		}
	}
	return outputs;
}

/** Experts of the 122B's and the fixture's shapes: one vector a pair, rows that came quantised, and whole rows. */
async function expertOutputs(engine: SelfCheckSubject): Promise<Float32Array[]> {
	const next = xorshift(122);
	const outputs: Float32Array[] = [];
	for (const [hidden, width, rowCount] of [
		[256, 256, 9],
		[3072, 1024, 2],
	] as const) {
		for (const [expert, downType] of (["Q4_K", "Q6_K"] as const).entries()) {
			const gate = makeMatrix("Q4_K", width, hidden, next);
			const up = makeMatrix("Q5_K", width, hidden, next);
			await engine.load(layer, expert, { gate, up, down: makeMatrix(downType, hidden, width, next) });
		}
		const values = makePlainRows(rowCount, hidden, next);
		const pairs = Array.from({ length: 2 * rowCount }, (_, pair) => pair);
		const batch: ExpertBatch = {
			layer,
			rowCount,
			rows: { dtype: "f32", values },
			rowIndex: Uint16Array.from(pairs, (pair) => pair >> 1),
			expert: Uint16Array.from(pairs, (pair) => pair & 1),
		};
		const quantised = Array.from({ length: rowCount }, (_, r) =>
			quantiseRow(values.subarray(r * hidden, (r + 1) * hidden)),
		);
		const q = Int16Array.from(quantised.flatMap((row) => [...row.q]));
		outputs.push(await engine.compute(batch));
		outputs.push(
			await engine.compute({
				...batch,
				rows: { dtype: "q14", q, scales: joinRows(quantised.map(({ scales }) => scales)) },
				weight: Float32Array.from(pairs, (pair) => (pair + 1) / 7),
			}),
		);
		for (const expert of [0, 1]) await engine.unload(layer, expert);
	}
	return outputs;
}
