import fc from "fast-check";
import { expect, test } from "vitest";
import { settle } from "../../../test/support/fake-clock.ts";
import { runs } from "../../../test/support/long.ts";
import { memoryBackbone, requestOf, testModel } from "../../../test/support/memory-backbone.ts";
import { expectRight } from "../../../test/support/remote-answers.ts";
import type { ScriptedWorker } from "../../../test/support/scripted-worker.ts";
import type { Link } from "../../protocol/link.ts";
import type { Dispatch } from "../../protocol/messages.ts";

const { hidden, experts, topK } = testModel;
const deadlineMs = 1000;

type After = (ms: number, fn: () => void) => void;

/** What a worker may do with a dispatch. */
const behaviours: Record<string, (dispatch: Dispatch, worker: ScriptedWorker, after: After) => void> = {
	answer: (dispatch, worker) => worker.answer(dispatch),
	slow: (dispatch, worker, after) => after(deadlineMs / 4, () => worker.answer(dispatch)),
	overtaken: (dispatch, worker, after) => after(deadlineMs * 0.6, () => worker.answer(dispatch)),
	late: (dispatch, worker, after) => after(deadlineMs * 3, () => worker.answer(dispatch)),
	silent() {},
	refuse({ id }, { link }) {
		link.send({ kind: "refuse", id, code: "overloaded", text: "" });
	},
	drain(dispatch, worker) {
		worker.link.send({ kind: "drain", reason: "test", graceMs: 100 });
		worker.answer(dispatch);
	},
	close: (_, { link }) => link.close(1001, "gone"),
	infinite: (dispatch, { link }) => sendVectors(dispatch, link, Number.POSITIVE_INFINITY, 0),
	long: (dispatch, { link }) => sendVectors(dispatch, link, 1, 1),
	twice(dispatch, worker) {
		worker.answer(dispatch);
		worker.answer(dispatch);
	},
};

function sendVectors({ id, mode, rowCount, expert }: Dispatch, link: Link, value: number, extra: number): void {
	const count = (mode === 1 ? rowCount : expert.length) + extra;
	const vectors = new Uint8Array(new Float32Array(count * hidden).fill(value).buffer);
	link.send({ kind: "partials", id, computeUs: 5, dtype: "f32", vectors });
}

const workerArbitrary = fc.record({
	first: fc.nat(experts - 1),
	count: fc.integer({ min: 1, max: experts }),
	rowsMax: fc.integer({ min: 1, max: 4 }),
	dispatchesMax: fc.integer({ min: 1, max: 3 }),
	/** Refuses what is cancelled; what it sends afterwards is late. */
	obeys: fc.boolean(),
	script: fc.array(fc.constantFrom(...Object.keys(behaviours)), { minLength: 1, maxLength: 6 }),
});
const requestArbitrary = fc.record({
	rows: fc.array(fc.uniqueArray(fc.nat(experts - 1), { minLength: topK, maxLength: topK }), {
		minLength: 1,
		maxLength: 5,
	}),
	phase: fc.constantFrom("prefill" as const, "decode" as const),
	/** When its caller has had enough. */
	abortAtMs: fc.option(fc.nat(deadlineMs), { freq: 3 }),
});

test(
	"whatever workers do, every answer is right or missing, in time, and each dispatch is settled exactly once",
	async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.array(workerArbitrary, { minLength: 1, maxLength: 4 }),
				fc.array(requestArbitrary, { minLength: 1, maxLength: 5 }),
				async (workers, requests) => {
					const sent: string[] = [];
					const backbone = memoryBackbone({
						deadlineMs,
						listener: { sent: (worker, id) => void sent.push(`${worker.address.slice(0, 4)} ${id}`) },
					});
					const { clock, dispatcher } = backbone;
					for (const [index, { first, count, rowsMax, dispatchesMax, script, obeys }] of workers.entries()) {
						let turn = 0;
						await backbone.join({
							seed: index + 1,
							holds: [{ layer: 1, first, count: Math.min(count, experts - first) }],
							offer: { rowsMax, dispatchesMax },
							onDispatch(dispatch, worker) {
								behaviours[script[turn++ % script.length]!]!(dispatch, worker, (ms, fn) => void clock.after(ms, fn));
							},
							onOther(message, { link }) {
								if (message.kind !== "cancel" || !obeys) return;
								link.send({ kind: "refuse", id: message.id, code: "cancelled", text: "" });
							},
						});
					}
					const startMs = clock.monotonic();
					const asked = requests.map(({ rows, phase }) => requestOf(rows, { phase }));
					let done = 0;
					const answers = Promise.all(
						asked.map(async (request, index) => {
							const { abortAtMs } = requests[index]!;
							const stop = new AbortController();
							const disarm = abortAtMs === null ? () => {} : clock.after(abortAtMs, () => stop.abort());
							const answer = await dispatcher.request(request, stop.signal).catch((error) => {
								expect(error).toBe(stop.signal.reason);
								return null;
							});
							disarm();
							done++;
							return answer;
						}),
					);
					await settle();
					while (done < asked.length) await clock.advance(25);
					// The deadline, and what a link of the assumed rate needs for these few bytes.
					expect(clock.monotonic() - startMs).toBeLessThan(deadlineMs + 100);
					for (const [index, answer] of (await answers).entries()) {
						if (answer !== null) expectRight(asked[index]!, answer);
					}
					await clock.advance(deadlineMs * 4);
					backbone.close();
					await settle();
					const settled = backbone.account.map((line) => line.split(" ").slice(1, 3).join(" "));
					expect(settled.sort()).toEqual(sent.sort());
					expect(clock.pending).toBe(0);
				},
			),
			{ numRuns: runs(60, 2_000) },
		);
	},
	runs(120_000, 1_800_000),
);
