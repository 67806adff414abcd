import { describe, expect, it } from "vitest";
import { type FakeClock, fakeClock, settle } from "../../test/support/fake-clock.ts";
import { backboneIdentity, workerIdentity } from "../../test/support/link-pair.ts";
import { plainEngine, plainModel } from "../../test/support/plain-engine.ts";
import { bytes, sampleWelcomeBody } from "../../test/support/sample-messages.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { until } from "../../test/support/until.ts";
import { KvasirError } from "../errors.ts";
import { addressOf } from "../io/base58.ts";
import { type KeyPair, keyPairFromSeed } from "../io/crypto.ts";
import { silentLog } from "../io/log.ts";
import { acceptHandshake } from "../protocol/handshake.ts";
import type { Link } from "../protocol/link.ts";
import { memoryTransportPair } from "../protocol/memory-transport.ts";
import {
	closeCodes,
	type ExpertRange,
	type Hello,
	type SessionMessage,
	type WelcomeBody,
} from "../protocol/messages.ts";
import type { SliceAccess } from "./expert-keeper.ts";
import { parseHold } from "./held-experts.ts";
import { startWorker, type WorkerParts } from "./worker.ts";
import type { WorkerEvent } from "./worker-event.ts";

const dims = { layers: 3, experts: 8, hidden: 16, width: 4 };
const model = plainModel(dims, bytes(32, 2));
const welcome: WelcomeBody = {
	...sampleWelcomeBody,
	limits: { memoryBytes: 1, rowsMax: 64, dispatchesMax: 4, inFlightBytesMax: 2 ** 20 },
	model: { ...sampleWelcomeBody.model, ...dims, expertWidth: dims.width },
	backbones: [],
};

interface Session {
	readonly hello: Hello;
	readonly link: Link;
	readonly messages: SessionMessage[];
}

/** A worker whose gateway leads to backbones in memory, each with its own welcome; `""` answers who names none. */
async function startScene(
	change: Partial<WorkerParts> = {},
	backbones: Readonly<Record<string, { identity: KeyPair; welcome: WelcomeBody }>> = {
		"": { identity: backboneIdentity, welcome },
	},
) {
	const clock: FakeClock = fakeClock();
	const events: WorkerEvent[] = [];
	const sessions: Session[] = [];
	const kept: unknown[] = [];
	const remembered = new Map<string, Uint8Array>();
	let epoch = 0;
	const worker = await startWorker({
		async dial({ backbone }) {
			const [near, far] = memoryTransportPair({ clock });
			const { identity, welcome: body } = backbones[backbone === undefined ? "" : addressOf(backbone)]!;
			acceptHandshake(far, { identity, welcome: () => body, clock, random: seededRandom(5) }).then(
				({ link, hello }) => {
					const messages: SessionMessage[] = [];
					link.onMessage = (message) => messages.push(message);
					sessions.push({ hello, link, messages });
				},
				() => {},
			);
			return near;
		},
		gateway: "gate.example",
		backbone: null,
		identity: workerIdentity,
		payout: bytes(32, 5),
		model,
		hold: (model) => parseHold("0-1:0-3", model),
		engine: plainEngine(),
		engineFacts: { device: "cpu", memoryBytes: 2 ** 30, threads: 1, selfCheck: new Uint8Array(0) },
		memoryBytes: 2 ** 20,
		build: "test",
		home: {
			instance: bytes(16),
			nextEpoch: async () => ++epoch,
			backboneOf: async (gateway) => remembered.get(gateway) ?? null,
			rememberBackbone: async (gateway, key) => {
				remembered.set(gateway, key);
			},
		},
		keepReceipt: async (receipt) => {
			kept.push(receipt);
		},
		clock,
		random: seededRandom(9),
		log: silentLog,
		signal: new AbortController().signal,
		onEvent: (event) => events.push(event),
		...change,
	});
	const closed = worker.closed.then(
		() => "closed",
		(error) => error.code,
	);
	await settle();
	return { worker, clock, events, sessions, kept, closed };
}

const dispatch = (id: number, layer: number, expert: number): SessionMessage => ({
	kind: "dispatch",
	id,
	layer,
	deadlineMs: 100,
	mode: 0,
	dtype: "f32",
	rowCount: 1,
	rowIndex: new Uint16Array(1),
	expert: new Uint16Array([expert]),
	weight: new Float32Array(0),
	rows: new Uint8Array(dims.hidden * 4),
});

const lastHolding = ({ messages }: Session): readonly ExpertRange[] | undefined =>
	messages.findLast((message) => message.kind === "holding")?.ready;

describe("startWorker()", () => {
	it("loads, says hello with what it holds, serves, and leaves when drained", async () => {
		const { worker, events, sessions, clock, closed } = await startScene();
		expect(events.map(({ event }) => event)).toEqual([
			...Array(8).fill("loading"),
			"holding",
			"connecting",
			"connected",
		]);
		const [session] = sessions as [Session];
		expect(session.hello.holds.map(({ layer, first, count }) => [layer, first, count])).toEqual([
			[0, 0, 4],
			[1, 0, 4],
		]);
		session.link.send(dispatch(1, 0, 3));
		session.link.send(dispatch(2, 2, 0));
		await settle();
		expect(session.messages.slice(1).map(({ kind }) => kind)).toEqual(["refuse", "partials"]);
		expect(worker.snapshot()).toMatchObject({
			gateway: "gate.example",
			worker: addressOf(workerIdentity.publicKey),
			payout: addressOf(bytes(32, 5)),
			engine: "f32",
			links: [{ backbone: addressOf(backboneIdentity.publicKey), state: "linked" }],
			work: { dispatches: 1, pairs: 1 },
			refused: { not_holding: 1 },
			draining: false,
		});
		const drained = worker.drain("signal", 100);
		await clock.advance(200);
		await drained;
		expect(await closed).toBe("closed");
		expect(session.messages.at(-1)).toMatchObject({ kind: "bye" });
		expect(clock.pending).toBe(0);
	});

	it("follows an assignment where nobody said what to hold, and only there", async () => {
		const free = await startScene({ hold: null });
		const [session] = free.sessions as [Session];
		expect([session.hello.holds, lastHolding(session)]).toEqual([[], []]);
		const wanted = [
			{ layer: 1, first: 3, count: 2 },
			{ layer: 9, first: 0, count: 1 },
		];
		const assign = { kind: "assign", wanted, manifestDigest: bytes(32), slicePath: "" } as const;
		session.link.send(assign);
		await until(() => (lastHolding(session)?.length ?? 0) > 0, "the assigned experts to be held");
		expect(lastHolding(session)).toEqual([{ layer: 1, first: 3, count: 2 }]);
		const fixed = await startScene();
		fixed.sessions[0]!.link.send(assign);
		await until(() => fixed.sessions[0]!.messages.at(-1)?.kind === "refuse", "a refusal");
		expect(lastHolding(fixed.sessions[0]!)).toHaveLength(2);
		expect(fixed.sessions[0]!.messages.at(-1)).toMatchObject({ kind: "refuse", id: null, code: "overloaded" });
		await free.worker.drain("done", 0);
		await fixed.worker.drain("done", 0);
	});

	it("links to the backbones that its own vouches for, once each, never twice to the same", async () => {
		const other = keyPairFromSeed(bytes(32, 150));
		const [mine, theirs] = [addressOf(backboneIdentity.publicKey), addressOf(other.publicKey)];
		const all = [backboneIdentity.publicKey, other.publicKey, workerIdentity.publicKey];
		const first = { identity: backboneIdentity, welcome: { ...welcome, backbones: all } };
		const second = { identity: other, welcome: { ...welcome, session: bytes(16, 9), backbones: all } };
		const { worker, sessions, clock } = await startScene({}, { "": first, [theirs]: second });
		await settle(20);
		expect(sessions).toHaveLength(2);
		expect(
			worker
				.snapshot()
				.links.map(({ backbone }) => backbone)
				.sort(),
		).toEqual([mine, theirs].sort());
		for (const { link } of sessions) link.send(dispatch(1, 0, 0));
		await settle();
		expect(worker.snapshot().work.dispatches).toBe(2);
		const drained = worker.drain("done", 0);
		await clock.advance(100);
		await drained;
		expect(clock.pending).toBe(0);
	});

	it("ends with model_mismatch at a backbone that runs another file", async () => {
		const other = { ...welcome, model: { ...welcome.model, modelId: bytes(32, 99) } };
		const { closed, sessions } = await startScene({}, { "": { identity: backboneIdentity, welcome: other } });
		expect(await closed).toBe("model_mismatch");
		await settle();
		expect(sessions[0]!.messages).toMatchObject([{ kind: "refuse", code: "model_mismatch" }]);
	});

	it("outlives a 404 for the manifest while its backbone is away, and asks anew at the next link; ends on one of a linked backbone", async () => {
		const answers: ((error: KvasirError) => void)[] = [];
		const get = () => new Promise<never>((_, reject) => answers.push(reject));
		const slices = { client: () => ({ get }) } as unknown as SliceAccess;
		const { sessions, events, clock, closed } = await startScene({ model: null, slices });
		const noSuchModel = new KvasirError("refused", "Cannot fetch: 404", { facts: { status: 404 } });
		expect(answers).toHaveLength(1);
		sessions[0]!.link.close(closeCodes.goingAway, "restart");
		await until(() => events.at(-1)?.event === "disconnected", "the link to end");
		answers[0]!(noSuchModel);
		await settle();
		await clock.advance(60_000);
		expect([sessions.length, answers.length]).toEqual([2, 2]);
		answers[1]!(noSuchModel);
		expect(await closed).toBe("model_missing");
	});

	it("dials again at once when told", async () => {
		const { worker, sessions, clock } = await startScene();
		worker.redial();
		await clock.advance(0);
		expect(sessions).toHaveLength(2);
		expect(sessions[1]!.hello.epoch).toBe(2);
		await worker.drain("done", 0);
	});
});
