import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { pinnedLogits } from "../backbone/decode/logits-check.ts";
import { packagePath } from "../io/built.ts";
import type { ExpertWeights } from "../model/weight-matrix.ts";
import { openCanonicalEngine } from "./canonical/canonical-engine.ts";
import { joinRows } from "./join-rows.ts";
import { combine, exp32, expertQuantisedRow, expertRow, multiplyRow, type QuantisedRow } from "./reference.ts";
import { canonicalDigest, type SelfCheckSubject, selfCheck } from "./self-check.ts";

/** The reference as an engine. */
function referenceSubject(): SelfCheckSubject {
	const experts = new Map<number, ExpertWeights>();
	return {
		load: async (_layer, expert, weights) => void experts.set(expert, weights),
		unload: async (_layer, expert) => void experts.delete(expert),
		exponentials: async (values) => values.map(exp32),
		group: async (_name, matrices) => ({
			multiply: async (rows, rowCount) =>
				matrices.map((matrix) => {
					const row = (r: number) => rows.subarray(r * matrix.inputs, (r + 1) * matrix.inputs);
					return joinRows(Array.from({ length: rowCount }, (_, r) => multiplyRow(matrix, row(r))));
				}),
			close: async () => {},
		}),
		compute: async ({ rows, rowCount, rowIndex, expert, weight }) => {
			const pairs = Array.from(expert, (id, p) => {
				const [weights, r] = [experts.get(id)!, rowIndex[p]!];
				const part = <T extends Float32Array | Int16Array>(all: T): T =>
					all.slice((r * all.length) / rowCount, ((r + 1) * all.length) / rowCount) as T;
				if (rows.dtype === "f32") return expertRow(weights, part(rows.values));
				const row: QuantisedRow = { q: part(rows.q), scales: part(rows.scales) };
				return expertQuantisedRow(weights, row);
			});
			if (!weight) return joinRows(pairs);
			const k = pairs.length / rowCount;
			return joinRows(
				Array.from({ length: rowCount }, (_, r) =>
					combine(pairs.slice(r * k, r * k + k), weight.subarray(r * k, r * k + k)),
				),
			);
		},
	};
}

test("the reference gives the digest", async () => {
	expect(await selfCheck(referenceSubject())).toBe(canonicalDigest);
});

test.each([
	[1, true],
	[2, false],
])("the canonical engine gives the digest: %i threads, the caller among them: %s", async (threads, inCaller) => {
	const engine = await openCanonicalEngine({ memoryBytes: 24 * 1024 ** 2, threads, inCaller });
	expect(await selfCheck(engine)).toBe(canonicalDigest);
	expect(engine.bytesHeld).toBe(0);
	await engine.close();
});

test.each([[["--no-enable-avx", "--no-enable-avx2"]], [["--liftoff-only"]], [["--no-liftoff"]]])(
	"kernels and logits give their digests under node %s",
	(flags) => {
		const printed = execFileSync(process.execPath, [...flags, packagePath("scripts/self-check.mjs")], {
			encoding: "utf8",
		});
		expect(printed.trim()).toBe(`${canonicalDigest} ${pinnedLogits}`);
	},
);

/** The last bit of the first value turned. */
function turned(values: Float32Array): Float32Array {
	const bits = new Uint32Array(values.slice().buffer);
	bits[0]! ^= 1;
	return new Float32Array(bits.buffer);
}

test("the digest sees one bit of an exponential, of a matrix's output and of an expert's", async () => {
	const engine = await openCanonicalEngine({ memoryBytes: 24 * 1024 ** 2 });
	const subject: SelfCheckSubject = {
		load: (...given) => engine.load(...given),
		unload: (...given) => engine.unload(...given),
		compute: (batch) => engine.compute(batch),
		group: (...given) => engine.group(...given),
		exponentials: (values) => engine.exponentials(values),
	};
	const wrong: Partial<SelfCheckSubject>[] = [
		{ exponentials: async (values) => turned(await engine.exponentials(values)) },
		{ compute: async (batch) => turned(await engine.compute(batch)) },
		{
			group: async (name, matrices) => {
				const group = await engine.group(name, matrices);
				return { ...group, multiply: async (rows, count) => (await group.multiply(rows, count)).map(turned) };
			},
		},
	];
	for (const change of wrong) expect(await selfCheck({ ...subject, ...change })).not.toBe(canonicalDigest);
	await engine.close();
});
