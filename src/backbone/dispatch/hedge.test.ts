import { afterEach, describe, expect, test } from "vitest";
import { settle } from "../../../test/support/fake-clock.ts";
import { type MemoryBackbone, memoryBackbone, requestOf } from "../../../test/support/memory-backbone.ts";
import { askRemote, expectRight } from "../../../test/support/remote-answers.ts";
import type { ScriptedWorker } from "../../../test/support/scripted-worker.ts";
import type { Dispatch } from "../../protocol/messages.ts";
import { HedgeBudget } from "./hedge.ts";

let backbone: MemoryBackbone;
afterEach(() => backbone.close());

describe("a hedged dispatch", () => {
	test("asks a second worker beside one that is slow, takes the first answer, and leaves the slow one alone until it reacts", async () => {
		backbone = memoryBackbone({ deadlineMs: 5000 });
		const owed: Dispatch[] = [];
		const slow = await backbone.join({ seed: 1, onDispatch: (dispatch) => void owed.push(dispatch) });
		await backbone.join({ seed: 2 });
		const request = requestOf([[2, 5]]);
		const { answer, tookMs } = await askRemote(backbone, request);
		expect(tookMs).toBeLessThan(600);
		expectRight(request, answer);
		expect(answer).toMatchObject({ retried: 2, failures: [] });
		expect(backbone.dispatcher.counts).toMatchObject({ asked: 2, answered: 2, hedged: 2 });
		await settle();
		expect(slow.others).toContainEqual({ kind: "cancel", id: 1 });
		expect(backbone.account.map((line) => line.replace(/ \w{4} /, " "))).toEqual(["paid 1 2"]);
		expect(backbone.roster.usable.length).toBe(1);
		slow.answer(owed[0]!);
		await backbone.clock.advance(600);
		expect(backbone.roster.usable.length).toBe(2);
	});

	test("of two answers in time the first is used and both are paid", async () => {
		backbone = memoryBackbone({ deadlineMs: 5000 });
		const both: (() => void)[] = [];
		const onDispatch = (dispatch: Dispatch, self: ScriptedWorker) => {
			both.push(() => self.answer(dispatch));
			if (both.length === 2) for (const answer of both) answer();
		};
		for (const seed of [1, 2]) await backbone.join({ seed, onDispatch });
		const { answer } = await askRemote(backbone, requestOf([[2, 5]]));
		expect([...answer.worker]).toEqual([0, 0]);
		expect(backbone.account.map((line) => line.split(" ")[0])).toEqual(["paid", "paid"]);
	});

	test("is not made for a prefill, nor where it is not wanted", async () => {
		for (const options of [{ hedge: false }, {}]) {
			backbone = memoryBackbone({ deadlineMs: 2000, ...options });
			const silent = await backbone.join({ seed: 1, onDispatch() {} });
			const other = await backbone.join({ seed: 2, onDispatch() {} });
			const phase = "hedge" in options ? "decode" : "prefill";
			const { answer } = await askRemote(backbone, requestOf([[2, 5]], { phase }));
			expect(silent.dispatches.length + other.dispatches.length).toBe(1);
			expect(answer.failures).toEqual([{ reason: "late", pairs: 2 }]);
			backbone.close();
		}
	});
});

test("HedgeBudget grants 2% of the pairs asked, and a few at the start", () => {
	backbone = memoryBackbone();
	const budget = new HedgeBudget();
	let granted = 0;
	for (let round = 0; round < 10_000; round++) {
		budget.asked(8);
		if (budget.spend(8)) granted += 8;
	}
	expect(granted).toBe(budget.hedged);
	expect(granted / 80_000).toBeLessThan(0.024);
	expect(granted).toBeGreaterThan(1500);
});
