import { afterEach, describe, expect, test } from "vitest";
import { settle } from "../../../test/support/fake-clock.ts";
import { type MemoryBackbone, memoryBackbone, requestOf, testModel } from "../../../test/support/memory-backbone.ts";
import { askRemote, expectRight } from "../../../test/support/remote-answers.ts";
import type { Dispatch } from "../../protocol/messages.ts";
import type { RemoteRequest } from "../remote.ts";

let backbone: MemoryBackbone;
afterEach(() => backbone.close());

const { hidden } = testModel;
const ask = (request: RemoteRequest, signal?: AbortSignal) => askRemote(backbone, request, signal);
const layerOne = (first: number, count: number) => [{ layer: 1, first, count }];

describe("Dispatcher.request()", () => {
	test("lets a worker that holds all experts of a row sum it, and writes it down first", async () => {
		backbone = memoryBackbone();
		const worker = await backbone.join();
		const request = requestOf([
			[3, 1],
			[7, 0],
		]);
		const { answer } = await ask(request);
		expect(worker.dispatches.map(({ mode, rowCount }) => [mode, rowCount])).toEqual([[1, 2]]);
		expect([...answer.summed]).toEqual([1, 1]);
		expect([...answer.worker]).toEqual([0, 0, 0, 0]);
		expectRight(request, answer);
		expect(backbone.account).toEqual([`paid ${answer.workers[0]!.slice(0, 4)} 1 4`]);
		expect(backbone.dispatcher.counts).toMatchObject({ requests: 1, asked: 4, answered: 4, retried: 0 });
	});

	test("puts a row together from several workers, vectors in the order of the pairs", async () => {
		backbone = memoryBackbone();
		await backbone.join({ seed: 1, holds: layerOne(0, 4) });
		await backbone.join({ seed: 2, holds: layerOne(4, 4) });
		const request = requestOf([
			[7, 1],
			[2, 5],
			[3, 0],
		]);
		const { answer } = await ask(request);
		expect([...answer.summed]).toEqual([0, 0, 1]);
		expect(new Set(answer.worker)).toEqual(new Set([0, 1]));
		expectRight(request, answer);
	});

	test("answers at once with -1 for what nobody holds", async () => {
		backbone = memoryBackbone();
		await backbone.join({ holds: layerOne(0, 1) });
		const { answer, tookMs } = await ask(requestOf([[0, 6]]));
		expect([...answer.worker]).toEqual([0, -1]);
		expect(answer.failures).toEqual([{ reason: "not_holding", pairs: 1 }]);
		expect(tookMs).toBe(0);
		expect(backbone.dispatcher.holds(1, 0)).toBe(true);
		expect(backbone.dispatcher.holds(1, 6)).toBe(false);
	});

	test("gives up on a silent worker at the deadline, once, and uses it again after it showed up", async () => {
		backbone = memoryBackbone();
		const owed: Dispatch[] = [];
		let silent = true;
		const worker = await backbone.join({
			onDispatch: (dispatch, self) => (silent ? owed.push(dispatch) : self.answer(dispatch)),
		});
		const first = await ask(requestOf([[0, 1]]));
		expect([...first.answer.worker]).toEqual([-1, -1]);
		expect(first.answer.failures).toEqual([{ reason: "late", pairs: 2 }]);
		expect(first.tookMs).toBeLessThanOrEqual(1100);
		expect(worker.others).toContainEqual({ kind: "cancel", id: 1 });
		const second = await ask(requestOf([[0, 1]]));
		expect(second.tookMs).toBe(0);
		expect(second.answer.failures).toEqual([{ reason: "not_holding", pairs: 2 }]);
		silent = false;
		for (const dispatch of owed) worker.answer(dispatch);
		await backbone.clock.advance(600);
		const third = await ask(requestOf([[0, 1]]));
		expect([...third.answer.worker]).toEqual([0, 0]);
		expect(backbone.account.map((line) => line.replace(/ \w{4} /, " "))).toEqual(["unpaid 1 late", "paid 2 2"]);
	});

	test("asks another holder when one refuses, dies, or answers with the wrong size or infinities", async () => {
		const wrongs: Record<
			string,
			(dispatch: Dispatch, link: { send(message: never): void; close(code: number, reason: string): void }) => void
		> = {
			overloaded: ({ id }, link) => link.send({ kind: "refuse", id, code: "overloaded", text: "" } as never),
			closed: (_, link) => link.close(1001, "gone"),
			malformed: ({ id }, link) =>
				link.send({
					kind: "partials",
					id,
					computeUs: 1,
					dtype: "f32",
					vectors: new Uint8Array(hidden * 4 * 3),
				} as never),
			non_finite: ({ id, rowCount }, link) =>
				link.send({
					kind: "partials",
					id,
					computeUs: 1,
					dtype: "f32",
					vectors: new Uint8Array(new Float32Array(rowCount * hidden).fill(Number.NaN).buffer),
				} as never),
		};
		for (const [name, misbehave] of Object.entries(wrongs)) {
			backbone = memoryBackbone();
			const bad = await backbone.join({
				seed: 1,
				onDispatch: (dispatch, self) => misbehave(dispatch, self.link as never),
			});
			const good = await backbone.join({ seed: 2 });
			const request = requestOf([[2, 5]]);
			const { answer, tookMs } = await ask(request);
			expect(bad.dispatches.length, name).toBe(1);
			expect(good.dispatches.length, name).toBe(1);
			expect([...answer.worker], name).toEqual([0, 0]);
			expect(answer.retried, name).toBe(2);
			expect(tookMs, name).toBeLessThan(100);
			expectRight(request, answer);
			const booked = { overloaded: "void", closed: "void", malformed: "void", non_finite: "unpaid" }[name];
			expect(
				backbone.account.map((line) => line.split(" ")[0]),
				name,
			).toEqual([booked, "paid"]);
			if (name === "malformed") expect((await bad.ended).code).toBe(4400);
			backbone.close();
		}
	});

	test("ends the link of a worker that answers an id twice or one it was never asked", async () => {
		for (const ids of [
			[1, 1],
			[1, 7],
		]) {
			backbone = memoryBackbone();
			const worker = await backbone.join({
				onDispatch(dispatch, self) {
					for (const id of ids) self.answer({ ...dispatch, id });
				},
			});
			const { answer } = await ask(requestOf([[0, 1]]));
			expect([...answer.worker]).toEqual([0, 0]);
			expect((await worker.ended).code).toBe(4400);
			backbone.close();
		}
	});

	test("cancels what is under way when the caller aborts; what arrives in time all the same is paid, what does not is not", async () => {
		for (const inTime of [true, false]) {
			backbone = memoryBackbone();
			const owed: Dispatch[] = [];
			const worker = await backbone.join({ onDispatch: (dispatch) => void owed.push(dispatch) });
			const stop = new AbortController();
			const asked = ask(requestOf([[0, 1]]), stop.signal);
			await settle();
			stop.abort(new Error("enough"));
			await expect(asked).rejects.toThrow("enough");
			await settle();
			expect(worker.others).toContainEqual({ kind: "cancel", id: 1 });
			expect(backbone.account).toEqual([]);
			if (!inTime) await backbone.clock.advance(1100);
			worker.answer(owed[0]!);
			await settle();
			expect(backbone.account).toEqual([
				expect.stringMatching(inTime ? /^paid \w+ 1 2$/ : /^unpaid \w+ 1 cancelled_late$/),
			]);
			expect(backbone.dispatcher.counts.answered).toBe(0);
			backbone.close();
		}
	});

	test("what was cancelled takes no room: the next request is sent at once", async () => {
		for (const phase of ["prefill", "decode"] as const) {
			backbone = memoryBackbone();
			const worker = await backbone.join({ offer: { dispatchesMax: 1 }, onDispatch() {} });
			const stop = new AbortController();
			const first = ask(requestOf([[0, 1]], { phase }), stop.signal);
			const second = ask(requestOf([[2, 3]], { phase }));
			await settle();
			expect(worker.dispatches.length).toBe(1);
			stop.abort(new Error("enough"));
			await expect(first).rejects.toThrow("enough");
			await settle();
			expect(worker.dispatches.map(({ expert }) => [...expert])).toEqual([
				[0, 1],
				[2, 3],
			]);
			expect(backbone.roster.workers[0]!.lane.inFlight).toBe(2);
			await second;
			expect(backbone.roster.workers[0]!.lane).toMatchObject({ inFlight: 0, inFlightBytes: 0, backlogBytes: 0 });
			backbone.close();
		}
	});

	test("rejects with `closed` once the backbone closes, and refuses new requests", async () => {
		backbone = memoryBackbone();
		await backbone.join({ onDispatch() {} });
		const asked = ask(requestOf([[0, 1]]));
		await settle();
		backbone.close();
		await expect(asked).rejects.toMatchObject({ code: "closed" });
		await expect(backbone.dispatcher.request(requestOf([[0, 1]]))).rejects.toMatchObject({ code: "closed" });
	});

	test("a decode row overtakes a prefill, of which one message at most is in flight", async () => {
		backbone = memoryBackbone();
		const held: Dispatch[] = [];
		const worker = await backbone.join({
			offer: { rowsMax: 1 },
			onDispatch: (dispatch) => held.push(dispatch),
		});
		const prefill = backbone.dispatcher.request(
			requestOf(
				[
					[0, 1],
					[2, 3],
					[4, 5],
				],
				{ phase: "prefill" },
			),
		);
		await settle();
		const decode = backbone.dispatcher.request(requestOf([[6, 7]]));
		await settle();
		expect(worker.dispatches.map(({ expert }) => [...expert])).toEqual([
			[0, 1],
			[6, 7],
		]);
		while (held.length > 0) {
			worker.answer(held.shift()!);
			await settle();
		}
		expect(worker.dispatches.map(({ id }) => id)).toEqual([1, 2, 3, 4]);
		expect([...(await prefill).worker]).toEqual([0, 0, 0, 0, 0, 0]);
		expect([...(await decode).worker]).toEqual([0, 0]);
	});

	test("keeps to the worker's limits: what does not fit waits", async () => {
		backbone = memoryBackbone();
		const held: Dispatch[] = [];
		const worker = await backbone.join({
			offer: { rowsMax: 1, dispatchesMax: 2 },
			onDispatch: (dispatch) => held.push(dispatch),
		});
		const asked = backbone.dispatcher.request(
			requestOf([
				[0, 1],
				[2, 3],
				[4, 5],
			]),
		);
		await settle();
		expect(worker.dispatches.length).toBe(2);
		worker.answer(held.shift()!);
		await settle();
		expect(worker.dispatches.length).toBe(3);
		for (const dispatch of held) worker.answer(dispatch);
		expect([...(await asked).worker]).toEqual([0, 0, 0, 0, 0, 0]);
	});

	test("leaves no timer behind", async () => {
		backbone = memoryBackbone();
		await backbone.join();
		const before = backbone.clock.pending;
		for (let round = 0; round < 20; round++) await ask(requestOf([[0, 1]]));
		expect(backbone.clock.pending).toBe(before);
		backbone.close();
		await settle();
		expect(backbone.clock.pending).toBe(0);
	});
});
