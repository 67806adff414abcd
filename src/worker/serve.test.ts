import { afterEach, describe, expect, it } from "vitest";
import { type FakeClock, fakeClock, settle } from "../../test/support/fake-clock.ts";
import { backboneIdentity, helloFacts, linkPair, workerIdentity } from "../../test/support/link-pair.ts";
import { plainEngine, plainModel } from "../../test/support/plain-engine.ts";
import { bytes, sampleWelcomeBody } from "../../test/support/sample-messages.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import type { ExpertBatch, ExpertEngine } from "../experts/engine.ts";
import { sha256 } from "../io/crypto.ts";
import { silentLog } from "../io/log.ts";
import { emptyDigest, extendDigest } from "../ledger/digest-chain.ts";
import { encodeReceipt, parseReceipt, type Receipt, receiptHash } from "../ledger/receipt.ts";
import { signReceipt, verifyCountersign } from "../ledger/receipt-signatures.ts";
import type { Link } from "../protocol/link.ts";
import type { Countersign, Dispatch, Partials, Refuse, SessionMessage, WelcomeBody } from "../protocol/messages.ts";
import { bindPayout } from "../protocol/payout.ts";
import { floatsOfTensor, tensorOfFloats, tensorOfQ14 } from "../protocol/tensor.ts";
import { loadExperts } from "./capacity.ts";
import { HeldExperts } from "./held-experts.ts";
import { type ServeParts, serveLink } from "./serve.ts";
import { Tally } from "./tally.ts";

const dims = { layers: 4, experts: 8, hidden: 40, width: 12 };
const welcome: WelcomeBody = {
	...sampleWelcomeBody,
	limits: { memoryBytes: 2 ** 30, rowsMax: 8, dispatchesMax: 3, inFlightBytesMax: 20 * dims.hidden * 4 },
	model: { ...sampleWelcomeBody.model, ...dims, expertWidth: dims.width, topK: 2 },
};
const model = plainModel(dims, welcome.model.modelId);
const random = seededRandom(3);
const row = () => Float32Array.from({ length: dims.hidden }, () => random.uniform() - 0.5);

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

interface Scene {
	readonly clock: FakeClock;
	readonly backbone: Link;
	readonly tally: Tally;
	readonly arrived: SessionMessage[];
	readonly digests: Uint8Array[];
	readonly serving: ReturnType<typeof serveLink>;
}

const links: Link[] = [];
afterEach(() => {
	for (const link of links.splice(0)) link.close(1000, "");
});

async function scene(engine: ExpertEngine, change: Partial<ServeParts> = {}): Promise<Scene> {
	const clock = fakeClock();
	const hello = { offer: welcome.limits } as const;
	const { worker, backbone } = await linkPair({ clock, welcome, hello: helloFacts(workerIdentity, hello) });
	links.push(worker, backbone);
	const held = new HeldExperts();
	await loadExperts([{ layer: 1, first: 0, count: 6 }], { model, engine, held, asMuchAsFits: false });
	const tally = new Tally();
	const arrived: SessionMessage[] = [];
	const digests: Uint8Array[] = [];
	backbone.onMessage = (message, _, digest) => {
		arrived.push(message);
		digests.push(digest);
	};
	const serving = serveLink({
		link: worker,
		welcome,
		engine,
		held,
		identity: workerIdentity,
		payout: bytes(32, 5),
		clock,
		log: silentLog,
		tally,
		...change,
	});
	await settle();
	expect(arrived).toEqual([{ kind: "holding", ready: [{ layer: 1, first: 0, count: 6 }] }]);
	arrived.length = 0;
	digests.length = 0;
	return { clock, backbone, tally, arrived, digests, serving };
}

function dispatch(id: number, rows: readonly Float32Array[], pairs: readonly (readonly [number, number])[]): Dispatch {
	const values = new Float32Array(rows.length * dims.hidden);
	rows.forEach((one, i) => {
		values.set(one, i * dims.hidden);
	});
	return {
		kind: "dispatch",
		id,
		layer: 1,
		deadlineMs: 1000,
		mode: 0,
		dtype: "f32",
		rowCount: rows.length,
		rowIndex: Uint16Array.from(pairs, ([at]) => at),
		expert: Uint16Array.from(pairs, ([, expert]) => expert),
		weight: new Float32Array(0),
		rows: tensorOfFloats(values),
	};
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

describe("receipts", () => {
	async function afterWork() {
		const parts = await scene(plainEngine());
		for (let id = 1; id <= 3; id++) parts.backbone.send(dispatch(id, [row()], [[0, 1]]));
		await settle();
		const hashes = new Map(parts.arrived.map((message, i) => [(message as Partials).id, parts.digests[i]!] as const));
		parts.arrived.length = 0;
		return { ...parts, hashes };
	}

	function receiptOf(hashes: ReadonlyMap<number, Uint8Array>, change: Partial<Receipt> = {}) {
		const paid = [1, 2, 3].filter((id) => !change.unpaid?.some(([unpaid]) => unpaid === id));
		const receipt: Receipt = {
			ledgerId: bytes(16),
			relay: "",
			backbone: backboneIdentity.publicKey,
			worker: workerIdentity.publicKey,
			payout: bytes(32, 5),
			payoutSignature: bindPayout(workerIdentity, bytes(32, 5)).signature,
			session: welcome.session,
			number: 1,
			previous: new Uint8Array(32),
			modelId: welcome.model.modelId,
			topK: 2,
			policy: 1,
			from: 0,
			to: 3,
			pairs: BigInt(paid.length),
			servedBytes: BigInt(paid.length * dims.hidden * 4),
			unpaid: [],
			digest: paid.reduce((digest, id) => extendDigest(digest, id, 1, hashes.get(id)!), emptyDigest),
			issuedAtMs: 0,
			...change,
		};
		const body = encodeReceipt(receipt);
		return { body, message: { kind: "receipt" as const, body, signature: signReceipt(backboneIdentity, body) } };
	}

	it("countersigns what its own log says too, twice the same", async () => {
		const { backbone, arrived, hashes, tally } = await afterWork();
		const { body, message } = receiptOf(hashes);
		backbone.send(message);
		backbone.send(message);
		await settle();
		const [reply, again] = arrived as Countersign[];
		expect(again).toEqual(reply);
		if (!("signature" in reply!.answer)) throw new Error("not signed");
		expect(verifyCountersign(parseReceipt(body), body, reply!.answer.signature)).toBe(true);
		expect(tally.snapshot().pay).toMatchObject({ receipts: 1, pairs: 3n, nano: BigInt(3 * dims.hidden * 4 * 7) });
		backbone.send(
			receiptOf(hashes, {
				number: 2,
				previous: receiptHash(body),
				from: 3,
				to: 4,
				pairs: 0n,
				servedBytes: 0n,
				digest: emptyDigest,
				unpaid: [[4, "late"]],
			}).message,
		);
		await settle();
		expect(arrived.at(-1)).toMatchObject({ number: 2, answer: { signature: expect.anything() } });
	});

	it("counts what is not paid, by reason", async () => {
		const { backbone, hashes, tally, arrived } = await afterWork();
		backbone.send(receiptOf(hashes, { unpaid: [[2, "late"]] }).message);
		await settle();
		expect(arrived[0]).toMatchObject({ answer: { signature: expect.anything() } });
		expect(tally.snapshot().unpaid).toEqual({ late: 1 });
	});

	it.each<[string, Partial<Receipt>]>([
		["pairs", { pairs: 2n, servedBytes: BigInt(2 * dims.hidden * 4) }],
		["digest", { digest: sha256(bytes(1)) }],
		["served bytes", { servedBytes: BigInt(3 * dims.hidden * 4 + 12) }],
	])("answers with its own figures when the %s are wrong", async (_, change) => {
		const { backbone, hashes, arrived, tally } = await afterWork();
		const honest = parseReceipt(receiptOf(hashes).body);
		backbone.send(receiptOf(hashes, change).message);
		await settle();
		expect((arrived[0] as Countersign).answer).toEqual({ pairs: 3, digest: new Uint8Array(honest.digest) });
		expect(tally.snapshot().pay).toMatchObject({ receipts: 0, disputed: 1, nano: 0n });
	});

	it.each<[string, Partial<Receipt>]>([
		["another worker", { worker: bytes(32, 77) }],
		["another backbone", { backbone: workerIdentity.publicKey }],
		["another wallet", { payout: bytes(32, 78) }],
		["another session", { session: bytes(16, 79) }],
		["a number that is not next", { number: 2, previous: bytes(32) }],
		["another model", { modelId: bytes(32, 80) }],
	])("does not answer a receipt for %s", async (_, change) => {
		const { backbone, hashes, arrived, tally } = await afterWork();
		backbone.send(receiptOf(hashes, change).message);
		await settle();
		expect(arrived).toEqual([]);
		expect(tally.snapshot().pay.ignored).toBe(1);
	});

	it("drains: takes nothing new, finishes, waits for the receipt, says goodbye", async () => {
		const { backbone, hashes, arrived, serving, clock } = await afterWork();
		const drained = serving.drain("signal", 30_000);
		backbone.send(dispatch(9, [row()], [[0, 1]]));
		await clock.advance(100);
		expect(arrived[0]).toEqual({ kind: "drain", reason: "signal", graceMs: 30_000 });
		expect(refusals(arrived)).toEqual([[9, "draining"]]);
		backbone.send(receiptOf(hashes).message);
		await clock.advance(100);
		await drained;
		expect(arrived.at(-1)).toMatchObject({ kind: "bye", code: "draining" });
		expect(await serving.ended).toEqual({ kind: "left" });
		expect(await backbone.ended).toEqual({ code: 1000, reason: "signal" });
	});

	it("leaves when the grace is over, receipt or not", async () => {
		const { serving, clock } = await afterWork();
		const drained = serving.drain("signal", 500);
		await clock.advance(499);
		let over = false;
		drained.then(() => {
			over = true;
		});
		await settle();
		expect(over).toBe(false);
		await clock.advance(40);
		await drained;
	});
});
