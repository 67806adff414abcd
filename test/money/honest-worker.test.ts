import { expect, test } from "vitest";
import type { WorkerLink } from "../../src/backbone/links/worker-link.ts";
import { type AcceptedDispatch, Audits } from "../../src/backbone/pay/audits.ts";
import { expectedAnswer } from "../../src/backbone/pay/compare-answer.ts";
import { silentLog } from "../../src/io/log.ts";
import { recompute } from "../support/audited-swarm.ts";
import { fakeClock } from "../support/fake-clock.ts";
import { testModel } from "../support/memory-backbone.ts";
import { seededRandom } from "../support/seeded-random.ts";

const { hidden } = testModel;
const dispatches = 100_000;

/** How an honest engine of a class differs from the backbone's own: not at all, or by the rounding of what it computes with. */
const classes: Readonly<Record<string, (right: Float32Array, random: () => number) => Float32Array>> = {
	f32: (right) => right,
	// int8 activations: each value off by up to half a step of the largest.
	"ort:1.30.0:cpu:test": (right, random) => {
		const step = Math.max(...right.map(Math.abs)) / 127;
		return right.map((value) => value + (random() - 0.5) * step);
	},
	// Half precision, by the nearest value below.
	"ort:1.30.0:webgpu:test": (right) => right.map((value) => halfOf(value)),
};

function halfOf(value: number): number {
	const exponent = Math.max(-14, Math.floor(Math.log2(Math.abs(value) || 1)));
	return Math.trunc(value / 2 ** (exponent - 10)) * 2 ** (exponent - 10);
}

test.each(Object.entries(classes))(
	"an honest worker of class %s is never flagged in 100,000 dispatches",
	async (engineClass, compute) => {
		const random = seededRandom(7);
		const failures: unknown[] = [];
		const clock = fakeClock();
		const audits = new Audits({
			...{ model: testModel, clock, random, log: silentLog, engineClass: "f32", recompute, share: 1 },
			hold() {},
			release() {},
			condemn: () => failures.push("condemned"),
			emit: (event) => failures.push(event),
		});
		const worker = { address: "worker", session: "", hello: { engine: { class: engineClass } } } as WorkerLink;
		for (let id = 1; id <= dispatches; id++) {
			const dispatch = await accepted(worker, id, random.uniform, compute);
			audits.accepted(dispatch);
			// As many may wait as audits keep: none is skipped.
			if (id % 64 === 0) await audits.finish(worker);
		}
		await audits.finish(worker);
		expect(failures).toEqual([]);
		expect(audits.counts).toEqual({ passed: dispatches, failed: 0, skipped: 0 });
	},
);

/** Rows of all sizes, zeros among them; every other dispatch asks for sums. */
async function accepted(
	worker: WorkerLink,
	id: number,
	uniform: () => number,
	compute: (right: Float32Array, random: () => number) => Float32Array,
): Promise<AcceptedDispatch> {
	const scale = id % 50 === 0 ? 0 : 10 ** (uniform() * 12 - 6);
	const rows = Float32Array.from({ length: hidden }, () => (uniform() - 0.5) * scale);
	const asked = {
		layer: id % 3,
		mode: (id % 2) as 0 | 1,
		dtype: "f32" as const,
		rowCount: 1,
		rowIndex: Uint16Array.of(0, 0),
		expert: Uint16Array.of(id % 8, (id + 3) % 8),
		weight: Float32Array.of(uniform(), uniform()),
		rows: new Uint8Array(rows.buffer),
	};
	const pairs = await recompute({ ...asked, rows: { dtype: "f32", values: rows } });
	const vectors = new Float32Array(pairs.length);
	for (let at = 0; at < pairs.length; at += hidden) {
		vectors.set(compute(pairs.subarray(at, at + hidden), uniform), at);
	}
	const answer = expectedAnswer(asked, vectors, hidden);
	return { worker, id, asked, vectors: new Uint8Array(answer.slice().buffer), sequence: [id] };
}
