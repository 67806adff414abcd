import { describe, expect, it } from "vitest";
import { type FakeClock, fakeClock, settle } from "../../test/support/fake-clock.ts";
import { backboneIdentity, helloFacts, workerIdentity } from "../../test/support/link-pair.ts";
import { plainEngine } from "../../test/support/plain-engine.ts";
import { bytes, sampleWelcomeBody } from "../../test/support/sample-messages.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { KvasirError } from "../errors.ts";
import { type KeyPair, keyPairFromSeed } from "../io/crypto.ts";
import { silentLog } from "../io/log.ts";
import { acceptHandshake } from "../protocol/handshake.ts";
import type { Link } from "../protocol/link.ts";
import { memoryTransportPair } from "../protocol/memory-transport.ts";
import { closeCodes, type Hello } from "../protocol/messages.ts";
import { DialLoop, type DialLoopParts } from "./dial.ts";
import { upgradeError } from "./dial-error.ts";
import { HeldExperts } from "./held-experts.ts";
import type { WorkerHome } from "./home.ts";
import { serveLink } from "./serve.ts";
import { Tally } from "./tally.ts";
import type { WorkerEvent } from "./worker-event.ts";

function memoryHome(): WorkerHome & { readonly backbones: Map<string, Uint8Array> } {
	const backbones = new Map<string, Uint8Array>();
	let epoch = 0;
	return {
		backbones,
		instance: bytes(16),
		nextEpoch: async (atLeast = 0) => {
			epoch = Math.max(epoch + 1, atLeast);
			return epoch;
		},
		backboneOf: async (gateway) => backbones.get(gateway) ?? null,
		rememberBackbone: async (gateway, key) => void backbones.set(gateway, key),
	};
}

interface Dialled {
	readonly atMs: number;
	readonly hello: Hello;
	readonly link: Link;
}

/** A loop against a backbone in memory; `refuse` may fail a dial before it connects. */
function startLoop(
	change: Partial<DialLoopParts> = {},
	refuse: (dial: number) => KvasirError | null = () => null,
	backbone: () => KeyPair = () => backboneIdentity,
) {
	const clock: FakeClock = fakeClock();
	const events: WorkerEvent[] = [];
	const links: Dialled[] = [];
	const dialsMs: number[] = [];
	const home = memoryHome();
	const aborter = new AbortController();
	const loop = new DialLoop({
		async dial() {
			dialsMs.push(clock.monotonic());
			const refusal = refuse(dialsMs.length);
			if (refusal !== null) throw refusal;
			const [near, far] = memoryTransportPair({ clock });
			acceptHandshake(far, {
				identity: backbone(),
				welcome: () => sampleWelcomeBody,
				clock,
				random: seededRandom(dialsMs.length),
			}).then(
				({ link, hello }) => links.push({ atMs: clock.monotonic(), hello, link }),
				() => {},
			);
			return near;
		},
		gateway: "gate.example",
		backbone: null,
		vouched: false,
		identity: workerIdentity,
		hello: () => helloFacts(),
		home,
		serve: (link, welcome) =>
			serveLink({
				link,
				welcome,
				engine: plainEngine(),
				held: new HeldExperts(),
				identity: workerIdentity,
				payout: bytes(32, 5),
				clock,
				log: silentLog,
				tally: new Tally(),
			}),
		clock,
		random: { ...seededRandom(7), uniform: () => 0.5 },
		signal: aborter.signal,
		onEvent: (event) => events.push(event),
		...change,
	});
	const ended = loop.ended.then(
		() => "ended",
		(error: KvasirError) => error.code,
	);
	return { clock, events, links, dialsMs, home, loop, ended, aborter };
}

const redialsMs = (events: readonly WorkerEvent[]) =>
	events.flatMap((event) => (event.event === "disconnected" ? [event.redialInMs] : []));

describe("DialLoop", () => {
	it.each(["hub_dial", "hub_refused", "no_backbone", "draining"])(
		"goes on dialling a gateway that says %s, and tells it",
		async (word) => {
			const body = JSON.stringify({ error: { code: word } });
			const refusal = upgradeError("gate.example", { status: 503, headers: { "retry-after": "3" }, body }, 0);
			const { clock, dialsMs, events, aborter, ended } = startLoop({}, () => refusal);
			await settle();
			await clock.advance(100_000);
			expect(dialsMs.length).toBeGreaterThan(4);
			expect(events.filter(({ event }) => event === "disconnected").at(-1)).toMatchObject({
				code: "refused",
				reason: word,
			});
			aborter.abort();
			expect(await ended).toBe("ended");
		},
	);

	it("dials again after every end, ever later with jitter, and starts over once a link has worked", async () => {
		const { clock, links, events, loop } = startLoop();
		await settle();
		expect(links).toHaveLength(1);
		await clock.advance(20_000);
		links[0]!.link.close(closeCodes.goingAway, "restart");
		await settle();
		await clock.advance(2_500);
		expect(links).toHaveLength(2);
		for (const delayMs of [5_000, 10_000, 20_000, 30_000]) {
			links.at(-1)!.link.close(closeCodes.goingAway, "restart");
			await clock.advance(delayMs);
		}
		expect(redialsMs(events)).toEqual([2_500, 5_000, 10_000, 20_000, 30_000]);
		expect(links.map(({ hello }) => hello.epoch)).toEqual([1, 2, 3, 4, 5, 6]);
		await clock.advance(20_000);
		links[5]!.link.close(closeCodes.goingAway, "restart");
		await settle();
		expect(redialsMs(events).at(-1)).toBe(2_500);
		await loop.drain("done", 0);
	});

	it("respects Retry-After, and never gives up on what may pass", async () => {
		const { clock, dialsMs, aborter, ended } = startLoop({}, (dial) =>
			dial < 30
				? new KvasirError("refused", "Cannot join: busy", { facts: { retryAfterMs: dial === 1 ? 90_000 : 0 } })
				: null,
		);
		await clock.advance(90_000);
		expect(dialsMs.slice(0, 2)).toEqual([0, 90_000]);
		await clock.advance(30 * 60_000);
		expect(dialsMs).toHaveLength(30);
		aborter.abort();
		expect(await ended).toBe("ended");
		expect(clock.pending).toBe(0);
	});

	it.each(["auth", "not_admitted", "version", "tls"] as const)(
		"ends with %s at the first contact, not later",
		async (code) => {
			const fail = () => new KvasirError(code, "Cannot join");
			expect(await startLoop({}, fail).ended).toBe(code);
			const later = startLoop({}, (dial) => (dial === 2 ? fail() : null));
			await settle();
			later.links[0]!.link.close(closeCodes.goingAway, "");
			await later.clock.advance(10_000);
			expect(later.links).toHaveLength(2);
			await later.loop.drain("done", 0);
		},
	);

	it("remembers the first backbone's key and ends with key_changed at another", async () => {
		let identity = backboneIdentity;
		const { clock, home, links, ended } = startLoop(
			{},
			() => null,
			() => identity,
		);
		await settle();
		expect(home.backbones.get("gate.example")).toEqual(new Uint8Array(backboneIdentity.publicKey));
		identity = keyPairFromSeed(bytes(32, 200));
		links[0]!.link.close(closeCodes.goingAway, "");
		await clock.advance(10_000);
		expect(await ended).toBe("key_changed");
	});

	it("believes a pinned key alone, and does not remember it as first seen", async () => {
		const wrong = startLoop({ backbone: bytes(32, 9) });
		expect(await wrong.ended).toBe("key_changed");
		const right = startLoop({ backbone: backboneIdentity.publicKey });
		await settle();
		expect(right.links).toHaveLength(1);
		expect(right.home.backbones.size).toBe(0);
		await right.loop.drain("done", 0);
	});

	it("comes back after bye when told to, and not after a bye for good", async () => {
		const { clock, links, ended, dialsMs } = startLoop();
		await settle();
		links[0]!.link.send({ kind: "bye", code: "restarting", text: "", retryAfterMs: 12_000 });
		await clock.advance(12_000);
		expect(dialsMs).toEqual([0, 12_000]);
		links[1]!.link.send({ kind: "bye", code: "quarantined", text: "for good", retryAfterMs: 0 });
		expect(await ended).toBe("closed");
	});

	it("jumps past a stale epoch once at once, then as after any failure", async () => {
		const { clock, links, dialsMs, loop } = startLoop();
		await settle();
		links[0]!.link.send({ kind: "refuse", id: null, code: "stale_epoch", text: "500" });
		await clock.advance(0);
		expect(links.map(({ hello }) => hello.epoch)).toEqual([1, 501]);
		links[1]!.link.send({ kind: "refuse", id: null, code: "stale_epoch", text: "900" });
		await clock.advance(0);
		expect(dialsMs).toEqual([0, 0]);
		await clock.advance(60_000);
		expect(links[2]!.hello.epoch).toBe(901);
		await loop.drain("done", 0);
	});

	it("leaves a key that another process took alone for 30 s", async () => {
		const { clock, links, dialsMs, events, loop } = startLoop();
		await settle();
		links[0]!.link.close(closeCodes.takenOver, "taken_over");
		await clock.advance(29_999);
		expect(dialsMs).toEqual([0]);
		expect(events.at(-1)).toMatchObject({ code: "taken_over", hint: expect.stringContaining("--home") });
		await clock.advance(1);
		expect(dialsMs).toEqual([0, 30_000]);
		await loop.drain("done", 0);
	});

	it("dials at once when told, whether it waits or is connected", async () => {
		const { clock, links, dialsMs, loop } = startLoop({}, (dial) =>
			dial === 1 ? new KvasirError("dns", "Cannot resolve") : null,
		);
		await clock.advance(100);
		loop.redial();
		await settle();
		expect(dialsMs).toEqual([0, 100]);
		expect(links).toHaveLength(1);
		await clock.advance(50);
		loop.redial();
		await clock.advance(0);
		expect(dialsMs).toEqual([0, 100, 150]);
		await loop.drain("done", 0);
	});

	it("asks for a vouched backbone again after 60 s at the earliest, and never ends for it", async () => {
		const { clock, dialsMs, aborter } = startLoop(
			{ vouched: true, backbone: backboneIdentity.publicKey },
			() => new KvasirError("auth", "Cannot join"),
		);
		await clock.advance(59_999);
		expect(dialsMs).toEqual([0]);
		await clock.advance(1);
		expect(dialsMs).toEqual([0, 60_000]);
		aborter.abort();
	});

	it("drains while it waits, and while it dials, without another dial", async () => {
		const waiting = startLoop({}, () => new KvasirError("dns", "Cannot resolve"));
		await settle();
		await waiting.loop.drain("signal", 1000);
		expect(await waiting.ended).toBe("ended");
		const dialling = startLoop({
			dial: ({ signal }) => new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason))),
		});
		await settle();
		await dialling.loop.drain("signal", 1000);
		expect(await dialling.ended).toBe("ended");
		expect([waiting.clock.pending, dialling.clock.pending]).toEqual([0, 0]);
	});
});
