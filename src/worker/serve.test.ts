import { describe, expect, it } from "vitest";
import { settle } from "../../test/support/fake-clock.ts";
import { plainEngine } from "../../test/support/plain-engine.ts";
import { bytes } from "../../test/support/sample-messages.ts";
import { dims, dispatch, row, scene } from "../../test/support/serve-scene.ts";
import type { ExpertBatch, ExpertEngine } from "../experts/engine.ts";
import type { Dispatch, Partials, Refuse, SessionMessage } from "../protocol/messages.ts";
import { floatsOfTensor, tensorOfQ14 } from "../protocol/tensor.ts";

/** An engine whose answers wait until let through. */
function gated(engine: ExpertEngine): ExpertEngine & { readonly waiting: (() => void)[]; open: boolean } {
	const waiting: (() => void)[] = [];
	return Object.assign(Object.create(engine) as ExpertEngine, {
		waiting,
		open: false,
		async compute(this: { open: boolean }, batch: ExpertBatch) {
			if (!this.open) await new Promise<void>((resolve) => waiting.push(resolve));
			return engine.compute(batch);
		},
	});
}

const refusals = (arrived: readonly SessionMessage[]) =>
	arrived.filter((message): message is Refuse => message.kind === "refuse").map(({ id, code }) => [id, code]);

describe("serveLink()", () => {
	it("answers each pair with what the engine computes, for any rows of any experts it holds", async () => {
		const engine = plainEngine();
		const { backbone, arrived, tally } = await scene(engine);
		const rows = [row(), row(), row()];
		const asked = dispatch(1, rows, [
			[0, 5],
			[0, 2],
			[1, 0],
			[2, 5],
		]);
		backbone.send(asked);
		await settle();
		const partials = arrived[0] as Partials;
		const { rowIndex, expert } = asked;
		const values = floatsOfTensor(asked.rows);
		const expected = await engine.compute({ layer: 1, rowCount: 3, rows: { dtype: "f32", values }, rowIndex, expert });
		expect(partials).toMatchObject({ kind: "partials", id: 1, dtype: "f32" });
		expect(floatsOfTensor(partials.vectors)).toEqual(expected);
		expect(tally.snapshot().work).toMatchObject({ dispatches: 1, pairs: 4, servedBytes: 4 * dims.hidden * 4 });
	});

	it("sums whole rows in mode 1", async () => {
		const { backbone, arrived } = await scene(plainEngine());
		const rows = [row(), row()];
		const pairs = [
			[0, 1],
			[0, 3],
			[1, 4],
			[1, 2],
		] as const;
		const weight = new Float32Array([0.75, 0.25, 0.5, 0.5]);
		backbone.send(dispatch(1, rows, pairs));
		backbone.send({ ...dispatch(2, rows, pairs), mode: 1, weight });
		await settle();
		const [each, whole] = arrived.map((message) => floatsOfTensor((message as Partials).vectors));
		expect(whole).toHaveLength(2 * dims.hidden);
		for (const r of [0, 1]) {
			for (let i = 0; i < dims.hidden; i++) {
				const first = Math.fround(weight[2 * r]! * each![2 * r * dims.hidden + i]!);
				const second = Math.fround(weight[2 * r + 1]! * each![(2 * r + 1) * dims.hidden + i]!);
				expect(whole![r * dims.hidden + i]).toBe(Math.fround(first + second));
			}
		}
	});

	it("takes q14 rows where the engine is canonical, and only there", async () => {
		const q = Int16Array.from({ length: dims.hidden }, (_, i) => i * 100 - 2000);
		const asked: Dispatch = {
			...dispatch(1, [row()], [[0, 1]]),
			dtype: "q14",
			rows: tensorOfQ14({ q, scales: new Float32Array([0.001]) }),
		};
		const canonical = await scene(plainEngine("canonical-1"));
		canonical.backbone.send(asked);
		const wild = Int16Array.from(q).fill(8192, 3, 4);
		canonical.backbone.send({ ...asked, id: 2, rows: tensorOfQ14({ q: wild, scales: new Float32Array([1]) }) });
		canonical.backbone.send({ ...asked, id: 3, rows: tensorOfQ14({ q, scales: new Float32Array([-1]) }) });
		await settle();
		const plain = dispatch(4, [Float32Array.from(q, (value) => value * Math.fround(0.001))], [[0, 1]]);
		canonical.backbone.send(plain);
		await settle();
		const answers = canonical.arrived.filter((message): message is Partials => message.kind === "partials");
		expect(answers.map(({ id }) => id)).toEqual([1, 4]);
		expect(floatsOfTensor(answers[0]!.vectors)).toEqual(floatsOfTensor(answers[1]!.vectors));
		expect(refusals(canonical.arrived)).toEqual([
			[2, "bounds"],
			[3, "bounds"],
		]);
		const other = await scene(plainEngine("f32"));
		other.backbone.send(asked);
		await settle();
		expect(refusals(other.arrived)).toEqual([[1, "bounds"]]);
	});

	it("refuses what it does not hold, what is too much, incomplete rows, and rows that are not finite", async () => {
		const { backbone, arrived, tally } = await scene(plainEngine());
		backbone.send(dispatch(1, [row()], [[0, 6]]));
		backbone.send({ ...dispatch(2, [row()], [[0, 1]]), layer: 2 });
		backbone.send(
			dispatch(
				3,
				Array.from({ length: 9 }, row),
				Array.from({ length: 9 }, (_, i) => [i, 1] as const),
			),
		);
		backbone.send({ ...dispatch(4, [row()], [[0, 1]]), mode: 1, weight: new Float32Array([1]) });
		backbone.send(dispatch(5, [row().fill(Number.NaN, 2, 3)], [[0, 1]]));
		backbone.send({ ...dispatch(6, [row()], [[0, 1]]), dtype: "f16", rows: new Uint8Array(dims.hidden * 2) });
		await settle();
		expect(refusals(arrived)).toEqual([
			[1, "not_holding"],
			[2, "not_holding"],
			[3, "bounds"],
			[4, "bounds"],
			[6, "bounds"],
			[5, "non_finite_row"],
		]);
		expect(tally.snapshot().refused).toEqual({ not_holding: 2, bounds: 3, non_finite_row: 1 });
	});

	it("refuses beyond the dispatches and bytes agreed, past the deadline, and after a cancel", async () => {
		const engine = gated(plainEngine());
		const { backbone, arrived, clock } = await scene(engine);
		for (let id = 1; id <= 4; id++) backbone.send({ ...dispatch(id, [row()], [[0, 1]]), deadlineMs: 100 });
		await settle();
		expect(refusals(arrived)).toEqual([[4, "overloaded"]]);
		// 1 and 2 are with the engine, 3 waits.
		await clock.advance(101);
		backbone.send({ kind: "cancel", id: 2 });
		await settle();
		for (const open of engine.waiting.splice(0)) open();
		await settle();
		expect(arrived.map((message) => [message.kind, "id" in message ? message.id : null])).toEqual([
			["refuse", 4],
			["partials", 1],
			["refuse", 3],
			["refuse", 2],
		]);
		expect(refusals(arrived).slice(1)).toEqual([
			[3, "deadline"],
			[2, "cancelled"],
		]);
		const many = Array.from({ length: 8 }, row);
		backbone.send(
			dispatch(
				5,
				many,
				many.flatMap((_, i) => [[i, 0] as const, [i, 1] as const]),
			),
		);
		await settle();
		expect(refusals(arrived).at(-1)).toEqual([5, "overloaded"]);
	});

	it("answers one that is being computed when it is cancelled, within its deadline: that is paid", async () => {
		const engine = gated(plainEngine());
		const { backbone, arrived } = await scene(engine);
		backbone.send(dispatch(1, [row()], [[0, 1]]));
		await settle();
		backbone.send({ kind: "cancel", id: 1 });
		await settle();
		expect(arrived).toEqual([]);
		for (const open of engine.waiting.splice(0)) open();
		await settle();
		expect(arrived).toMatchObject([{ kind: "partials", id: 1 }]);
	});

	it("has room for another as soon as one is cancelled, computed or not, as the backbone counts", async () => {
		const engine = gated(plainEngine());
		const { backbone, arrived } = await scene(engine);
		for (let id = 1; id <= 3; id++) backbone.send(dispatch(id, [row()], [[0, 1]]));
		for (const id of [1, 1, 3]) backbone.send({ kind: "cancel", id });
		for (let id = 4; id <= 6; id++) backbone.send(dispatch(id, [row()], [[0, 1]]));
		await settle();
		expect(refusals(arrived)).toEqual([
			[3, "cancelled"],
			[6, "overloaded"],
		]);
	});

	it("refuses one that still waits as soon as it is cancelled", async () => {
		const engine = gated(plainEngine());
		const { backbone, arrived } = await scene(engine);
		for (let id = 1; id <= 3; id++) backbone.send(dispatch(id, [row()], [[0, 1]]));
		backbone.send({ kind: "cancel", id: 3 });
		backbone.send({ kind: "cancel", id: 77 });
		await settle();
		expect(refusals(arrived)).toEqual([[3, "cancelled"]]);
		expect(engine.waiting).toHaveLength(2);
	});

	it("goes on after an engine failure, and says so", async () => {
		const engine = plainEngine();
		const { backbone, arrived } = await scene(engine);
		await engine.unload(1, 3);
		backbone.send(dispatch(1, [row()], [[0, 3]]));
		backbone.send(dispatch(2, [row()], [[0, 2]]));
		await settle();
		expect(refusals(arrived)).toEqual([[1, "engine_failed"]]);
		expect(arrived.some((message) => message.kind === "partials" && message.id === 2)).toBe(true);
	});

	it("ends the link with 4400 when ids do not increase", async () => {
		const { backbone, serving } = await scene(plainEngine());
		backbone.send(dispatch(5, [row()], [[0, 1]]));
		backbone.send(dispatch(5, [row()], [[0, 1]]));
		expect(await backbone.ended).toEqual({ code: 4400, reason: "malformed: id 5 after 5" });
		expect(await serving.ended).toMatchObject({ kind: "closed", code: 4400 });
	});

	it("loses nothing but the one link that broke the protocol", async () => {
		const engine = plainEngine();
		const [broken, sound] = [await scene(engine), await scene(engine)];
		broken.backbone.send({ ...dispatch(1, [row()], [[0, 1]]), rows: bytes(7) });
		sound.backbone.send(dispatch(1, [row()], [[0, 1]]));
		expect(await broken.serving.ended).toEqual({ kind: "closed", code: 4400, reason: "malformed: rows" });
		await settle();
		sound.backbone.send(dispatch(2, [row()], [[0, 1]]));
		await settle();
		expect(sound.arrived.map(({ kind }) => kind)).toEqual(["partials", "partials"]);
	});

	it("flips one value for the corrupted expert alone", async () => {
		const honest = await scene(plainEngine());
		const lying = await scene(plainEngine(), { corrupt: { layer: 1, expert: 2 } });
		const rows = [row()];
		for (const { backbone } of [honest, lying]) {
			backbone.send(
				dispatch(1, rows, [
					[0, 1],
					[0, 2],
				]),
			);
		}
		await settle();
		const [right, wrong] = [honest, lying].map(({ arrived }) => floatsOfTensor((arrived[0] as Partials).vectors));
		const differing = [...right!].flatMap((value, i) => (value === wrong![i] ? [] : [i]));
		expect(differing).toEqual([dims.hidden]);
	});

	it("says what it holds when that changes, and passes on bye and a stale epoch", async () => {
		const first = await scene(plainEngine());
		first.serving.holdingChanged();
		await settle();
		expect(first.arrived).toEqual([{ kind: "holding", ready: [{ layer: 1, first: 0, count: 6 }] }]);
		first.backbone.send({ kind: "bye", code: "key_in_use", text: "elsewhere", retryAfterMs: 300_000 });
		expect(await first.serving.ended).toEqual({
			kind: "bye",
			code: "key_in_use",
			text: "elsewhere",
			retryAfterMs: 300_000,
		});
		const second = await scene(plainEngine());
		second.backbone.send({ kind: "refuse", id: null, code: "stale_epoch", text: "41" });
		expect(await second.serving.ended).toEqual({ kind: "stale_epoch", epoch: 41 });
	});
});
