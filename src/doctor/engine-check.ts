import type { ExpertEngine } from "../experts/engine.ts";
import { expertRow } from "../experts/reference.ts";
import type { Clock } from "../io/clock.ts";
import type { Model } from "../model/model.ts";
import type { Check } from "./check.ts";

const rowCount = 4;
// numerics.md section 1: ||y - r|| <= 0.04 ||r|| + 1e-6, the worst row counts.
const toleranceRelative = 0.04;
const toleranceAbsolute = 1e-6;

/** Loads an expert of a model into an engine, computes a few rows and compares them with the definition in plain loops. */
export function engineCheck(
	name: string,
	parts: { openEngine(hidden: number): Promise<ExpertEngine>; openModel(): Promise<Model>; clock: Clock },
): Check {
	return {
		name: `engine ${name}`,
		async run() {
			const model = await parts.openModel();
			const { hidden } = model.shape;
			const weights = await model.weights.expert(0, 0).finally(() => model.weights.close());
			const engine = await parts.openEngine(hidden);
			try {
				const rows = testRows(hidden);
				const expected = Array.from({ length: rowCount }, (_, row) =>
					expertRow(weights, rows.slice(row * hidden, (row + 1) * hidden)),
				);
				await engine.load(0, 0, weights);
				const batch = { layer: 0, rowCount, rowIndex: Uint16Array.of(0, 1, 2, 3), expert: new Uint16Array(rowCount) };
				const startMs = parts.clock.monotonic();
				const vectors = await engine.compute({ ...batch, rows: { dtype: "f32", values: rows } });
				const ms = parts.clock.monotonic() - startMs;
				const worst = Math.max(...expected.map((row, index) => distance(vectors, index * hidden, row)));
				const same = worst === 0 ? "the same bytes as" : `within ${worst.toExponential(1)} of`;
				const found = `${engine.engineClass}: ${same} the definition, ${rowCount} rows in ${ms.toFixed(1)} ms`;
				return worst > toleranceRelative
					? { state: "failed", found, hint: "This engine computes wrong results here: use another one" }
					: { state: "ok", found };
			} finally {
				await engine.close();
			}
		},
	};
}

/** Rows of a fixed 32-bit xorshift in (-1, 1): the same on every machine. */
function testRows(hidden: number): Float32Array {
	let state = 0x9e3779b9;
	return Float32Array.from({ length: rowCount * hidden }, () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return state / 2 ** 31;
	});
}

/** ||y - r|| / ||r|| beyond the absolute tolerance. */
function distance(vectors: Float32Array, start: number, expected: Float32Array): number {
	let [difference, size] = [0, 0];
	for (const [index, value] of expected.entries()) {
		difference += (vectors[start + index]! - value) ** 2;
		size += value ** 2;
	}
	return Math.max(0, Math.sqrt(difference) - (difference === 0 ? 0 : toleranceAbsolute)) / Math.sqrt(size);
}
