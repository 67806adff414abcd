import { expect } from "vitest";
import type { RemoteAnswer, RemoteRequest } from "../../src/backbone/remote.ts";
import { settle } from "./fake-clock.ts";
import { expectedVectors, type MemoryBackbone, testModel } from "./memory-backbone.ts";

const { hidden, topK } = testModel;

/** Asks and moves the clock until the answer is there. */
export async function askRemote(
	{ dispatcher, clock }: Pick<MemoryBackbone, "dispatcher" | "clock">,
	request: RemoteRequest,
	signal?: AbortSignal,
): Promise<{ answer: RemoteAnswer; tookMs: number }> {
	const startMs = clock.monotonic();
	let over = false;
	const asked = dispatcher.request(request, signal).finally(() => {
		over = true;
	});
	asked.catch(() => {});
	await settle();
	while (!over) await clock.advance(10);
	return { answer: await asked, tookMs: clock.monotonic() - startMs };
}

/** Every pair has an answer or a reason; every vector is finite, and what it should be, single or summed. */
export function expectRight(request: RemoteRequest, answer: RemoteAnswer): void {
	const expected = expectedVectors(request);
	const failed = answer.failures.reduce((sum, { pairs }) => sum + pairs, 0);
	expect([...answer.worker].filter((worker) => worker === -1).length).toBe(failed);
	for (let pair = 0; pair < request.expert.length; pair++) {
		const vector = [...answer.vectors.subarray(pair * hidden, (pair + 1) * hidden)];
		expect(vector.every(Number.isFinite)).toBe(true);
		const isSummed = answer.summed[request.rowIndex[pair]!] === 1;
		if (answer.worker[pair] === -1 || (isSummed && pair % topK !== 0)) continue;
		const ranks = [...request.weight.subarray(pair, pair + topK)];
		const sum = expected[pair]!.map((_, at) =>
			ranks.reduce((acc, weight, rank) => acc + weight * expected[pair + rank]![at]!, 0),
		);
		expect(vector).toEqual(isSummed ? sum : expected[pair]);
	}
}
