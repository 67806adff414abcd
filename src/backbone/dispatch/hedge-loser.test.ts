import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { settle } from "../../../test/support/fake-clock.ts";
import { type MemoryBackbone, memoryBackbone, requestOf, testModel } from "../../../test/support/memory-backbone.ts";
import { askRemote, expectRight } from "../../../test/support/remote-answers.ts";
import type { ScriptedWorker } from "../../../test/support/scripted-worker.ts";
import type { Dispatch } from "../../protocol/messages.ts";
import type { AcceptedDispatch } from "../pay/audits.ts";
import type { RemoteAnswer } from "../remote.ts";

const { hidden } = testModel;
const deadlineMs = 5000;

let backbone: MemoryBackbone;
let accepted: AcceptedDispatch[];
let loser: ScriptedWorker;
let owed: Dispatch;
let answer: RemoteAnswer;
const request = requestOf([[2, 5]]);

/** A dispatch whose first worker was overtaken and has not reacted yet. */
beforeEach(async () => {
	accepted = [];
	backbone = memoryBackbone({ deadlineMs, accepted: (dispatch) => accepted.push(dispatch) });
	loser = await backbone.join({
		seed: 1,
		onDispatch(dispatch) {
			owed = dispatch;
		},
	});
	await backbone.join({ seed: 2 });
	({ answer } = await askRemote(backbone, request));
	await settle();
	expect(booked()).toEqual(["paid 1 2"]);
});
afterEach(() => backbone.close());

/** Without the keys: first the winner's line, then the loser's. */
const booked = () => backbone.account.map((line) => line.replace(/ \w{4} /, " "));

function say(vectors: Float32Array): void {
	const bytes = new Uint8Array(vectors.buffer);
	loser.link.send({ kind: "partials", id: owed.id, computeUs: 1, dtype: "f32", vectors: bytes });
}

async function expectAlone(ms: number): Promise<void> {
	expect(backbone.roster.usable.length).toBe(1);
	await backbone.clock.advance(ms);
	expect(backbone.roster.usable.length).toBe(2);
}

describe("a hedge's loser", () => {
	test("that arrives in time is paid and audited like any, once, and not used", async () => {
		const { counts } = backbone.dispatcher;
		const before = structuredClone(counts);
		say(new Float32Array(hidden).fill(7));
		await settle();
		expect(booked()).toEqual(["paid 1 2", "paid 1 2"]);
		expectRight(request, answer);
		expect(answer.workers.length).toBe(1);
		expect(accepted.map(({ worker, sequence }) => [worker.address === answer.workers[0], sequence])).toEqual([
			[true, [1]],
			[false, []],
		]);
		expect(counts).toMatchObject({ ...before, tensorBytes: { received: 2 * before.tensorBytes.received } });
		const [slow] = backbone.roster.workers;
		expect(slow).toMatchObject({
			answeredPairs: 2,
			outcomes: new Map([
				["overtaken", 1],
				["answered", 1],
			]),
		});
		await expectAlone(600);
		say(new Float32Array(hidden));
		expect((await loser.ended).code).toBe(4400);
		await settle();
		expect(booked()).toEqual(["paid 1 2", "paid 1 2"]);
	});

	test("is left alone for longer each time it is overtaken, whether or not it answers in time", async () => {
		for (const pauseMs of [500, 1000, 2000]) {
			loser.answer(owed);
			await settle();
			await backbone.clock.advance(pauseMs - 100);
			await expectAlone(200);
			backbone.roster.workers[1]!.draining = true;
			const next = backbone.dispatcher.request(request);
			await settle();
			backbone.roster.workers[1]!.draining = false;
			await backbone.clock.advance(3000);
			await next;
		}
	});

	test("that comes after its deadline is not paid, and shows that its worker is back", async () => {
		await backbone.clock.advance(deadlineMs);
		expect(booked()).toEqual(["paid 1 2", "unpaid 1 cancelled_late"]);
		expect(loser.others.filter(({ kind }) => kind === "cancel").length).toBe(1);
		loser.answer(owed);
		await settle();
		expect(booked().length).toBe(2);
		expect(accepted.length).toBe(1);
		await expectAlone(600);
	});

	test("of another size than asked ends its link", async () => {
		say(new Float32Array(2 * hidden));
		expect((await loser.ended).code).toBe(4400);
		expect(booked()).toEqual(["paid 1 2", "void 1"]);
		expectRight(request, answer);
	});

	test("that is not finite is not paid", async () => {
		say(new Float32Array(hidden).fill(Number.NaN));
		await settle();
		expect(booked()).toEqual(["paid 1 2", "unpaid 1 non_finite"]);
		expectRight(request, answer);
	});

	test("whose key was quarantined meanwhile is not paid", async () => {
		backbone.roster.quarantine(backbone.roster.workers[0]!);
		loser.answer(owed);
		await settle();
		expect(booked()).toEqual(["paid 1 2", "unpaid 1 quarantined"]);
		expect(accepted.length).toBe(1);
	});

	test("that refuses, as it was cancelled in time, is void and no failure", async () => {
		loser.link.send({ kind: "refuse", id: owed.id, code: "cancelled", text: "" });
		await settle();
		expect(booked()).toEqual(["paid 1 2", "void 1"]);
		await expectAlone(600);
	});

	test("whose link ends or is taken over is void, and no timer is left", async () => {
		for (const end of [
			() => loser.link.close(1001, "gone"),
			async () => {
				await backbone.join({ seed: 1, epoch: 2 });
			},
		]) {
			await end();
			await settle();
			expect(booked()).toEqual(["paid 1 2", "void 1"]);
			await backbone.clock.advance(deadlineMs);
			expect(booked().length).toBe(2);
			backbone.close();
			await settle();
			expect(backbone.clock.pending).toBe(0);
			backbone = memoryBackbone({ deadlineMs });
			loser = await backbone.join({ seed: 1, onDispatch() {} });
			await backbone.join({ seed: 2 });
			await askRemote(backbone, request);
		}
	});
});
