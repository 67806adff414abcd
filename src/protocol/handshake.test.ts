import { describe, expect, it } from "vitest";
import { fakeClock, settle } from "../../test/support/fake-clock.ts";
import { backboneIdentity, handshakes, helloFacts, linkPair, workerIdentity } from "../../test/support/link-pair.ts";
import { bytes, sampleWelcomeBody } from "../../test/support/sample-messages.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { KvasirError } from "../errors.ts";
import { encodeHandshake } from "./codec.ts";
import { acceptHandshake, dialHandshake } from "./handshake.ts";
import { workerProof } from "./handshake-keys.ts";
import { limits } from "./limits.ts";
import { type MemoryTransportOptions, memoryTransportPair } from "./memory-transport.ts";
import { closeCodes } from "./messages.ts";
import { bindPayout } from "./payout.ts";

/** How both sides ended: the code of the error each threw, or "linked". */
async function outcomes(options: Parameters<typeof handshakes>[0]): Promise<string[]> {
	const { dialled, accepted } = handshakes(options);
	const outcome = (side: Promise<unknown>) =>
		side.then(
			() => "linked",
			(error) => (error instanceof KvasirError ? error.code : String(error)),
		);
	return Promise.all([outcome(dialled), outcome(accepted)]);
}

/** Changes message number `index` (0 hello, 1 challenge, 2 auth, 3 welcome) on its way. */
function tamper(index: number, change: (message: Uint8Array) => Uint8Array): MemoryTransportOptions {
	let seen = 0;
	return { passage: (message) => (seen++ === index ? { replace: change(message) } : undefined) };
}

describe("handshake", () => {
	it("proves both keys and agrees on session, limits and tag keys", async () => {
		const clock = fakeClock();
		const { worker, backbone, welcome, hello } = await linkPair({ clock });
		expect(worker.peer).toEqual(backboneIdentity.publicKey);
		expect(Buffer.from(backbone.peer)).toEqual(Buffer.from(workerIdentity.publicKey));
		expect(Buffer.from(worker.session)).toEqual(Buffer.from(sampleWelcomeBody.session));
		expect(welcome.model.name).toBe("sample");
		expect(hello.epoch).toBe(1);
		const arrived = new Promise((resolve) => {
			backbone.onMessage = resolve;
		});
		worker.send({ kind: "holding", ready: [{ layer: 1, first: 2, count: 3 }] });
		expect(await arrived).toEqual({ kind: "holding", ready: [{ layer: 1, first: 2, count: 3 }] });
	});

	it("fails on both sides when any byte of any message changes on its way", async () => {
		for (const index of [0, 1, 2, 3]) {
			let length = 1;
			for (let at = 0; at < length; at += 7) {
				const memory = tamper(index, (message) => {
					length = message.length;
					const changed = Uint8Array.from(message);
					changed[at]! ^= 0x01;
					return changed;
				});
				const clock = fakeClock();
				const pair = outcomes({ clock, memory });
				await settle();
				await clock.advance(limits.handshakeMs);
				const [dialled, accepted] = await pair;
				expect(dialled, `message ${index} byte ${at}`).not.toBe("linked");
				// A changed welcome is noticed by the worker alone, which ends the link.
				if (index < 3) expect(accepted, `message ${index} byte ${at}`).not.toBe("linked");
			}
		}
	});

	it("refuses a replayed hello and auth: the nonce of the challenge is new", async () => {
		const clock = fakeClock();
		const recorded: Uint8Array[] = [];
		await linkPair({
			clock,
			memory: {
				passage: (message, from) => {
					if (from === "a") recorded.push(message);
					return undefined;
				},
			},
		});
		const [a, b] = memoryTransportPair();
		const accepted = acceptHandshake(b, {
			identity: backboneIdentity,
			welcome: () => sampleWelcomeBody,
			clock,
			random: seededRandom(99),
		});
		a.send([recorded[0]!]);
		a.send([recorded[1]!]);
		await expect(accepted).rejects.toMatchObject({ code: "auth" });
		expect(await a.ended).toMatchObject({ code: closeCodes.auth });
	});

	it("refuses another backbone than the expected one before it signs anything", async () => {
		const sent: Uint8Array[] = [];
		const memory: MemoryTransportOptions = {
			passage: (message, from) => {
				if (from === "a") sent.push(message);
				return undefined;
			},
		};
		const result = await outcomes({ clock: fakeClock(), expectedBackbone: bytes(32, 9), memory });
		expect(result).toEqual(["key_changed", "auth"]);
		expect(sent).toHaveLength(1);
	});

	it("accepts the expected backbone", async () => {
		const result = await outcomes({ clock: fakeClock(), expectedBackbone: backboneIdentity.publicKey });
		expect(result).toEqual(["linked", "linked"]);
	});

	it("refuses a peer that presents our own key", async () => {
		const result = await outcomes({ clock: fakeClock(), worker: backboneIdentity });
		expect(result).toEqual(["auth", "auth"]);
	});

	it("refuses an ephemeral key that gives no secret", async () => {
		const zero = tamper(0, (message) => {
			const changed = Uint8Array.from(message);
			// array, kind, version, then key, nonce and ephemeral with 2 bytes of header each
			changed.fill(0, 3 + 34 + 34 + 2, 3 + 34 + 34 + 34);
			return changed;
		});
		const honest = await outcomes({ clock: fakeClock(), memory: zero });
		expect(honest).toEqual(["auth", "auth"]);
		// A worker that signs its own all-zero ephemeral gets no further either.
		const clock = fakeClock();
		const [a, b] = memoryTransportPair();
		const accepted = acceptHandshake(b, {
			identity: backboneIdentity,
			welcome: () => sampleWelcomeBody,
			clock,
			random: seededRandom(1),
		});
		const hello = encodeHandshake({
			...helloFacts(),
			kind: "hello",
			version: 1,
			key: workerIdentity.publicKey,
			nonce: bytes(32),
			ephemeral: new Uint8Array(32),
		});
		a.onMessage = (challenge) => {
			a.onMessage = null;
			a.send([encodeHandshake({ kind: "auth", signature: workerIdentity.sign(workerProof(hello, challenge)) })]);
		};
		a.send([hello]);
		await expect(accepted).rejects.toMatchObject({ code: "auth", message: expect.stringContaining("no secret") });
	});

	it("refuses a wallet that the node key did not sign", async () => {
		const payout = bindPayout(backboneIdentity, bytes(32, 5));
		const result = await outcomes({ clock: fakeClock(), hello: helloFacts(workerIdentity, { payout }) });
		expect(result).toEqual(["auth", "auth"]);
	});

	it("refuses limits above the worker's offer, and heartbeats out of bounds", async () => {
		const raised = { ...sampleWelcomeBody, limits: { ...sampleWelcomeBody.limits, rowsMax: 65 } };
		expect((await outcomes({ clock: fakeClock(), welcome: raised }))[0]).toBe("bounds");
		const restless = { ...sampleWelcomeBody, heartbeatMs: 1 };
		expect((await outcomes({ clock: fakeClock(), welcome: restless }))[0]).toBe("bounds");
	});

	it("ends with 4426 when the versions differ, and both sides know", async () => {
		const newer = tamper(0, (message) => {
			const changed = Uint8Array.from(message);
			changed[2] = 2;
			return changed;
		});
		expect(await outcomes({ clock: fakeClock(), memory: newer })).toEqual(["version", "version"]);
	});

	it("ends with 4400 beyond 16 KiB in all", async () => {
		const [a, b] = memoryTransportPair();
		const accepted = acceptHandshake(b, {
			identity: backboneIdentity,
			welcome: () => sampleWelcomeBody,
			clock: fakeClock(),
			random: seededRandom(1),
		});
		a.send([new Uint8Array(limits.handshakeBytes + 1)]);
		await expect(accepted).rejects.toMatchObject({ code: "bounds" });
		expect(await a.ended).toMatchObject({ code: closeCodes.malformed });
	});

	it.each(["dial", "accept"])("gives up after 10 s of silence: %s", async (side) => {
		const clock = fakeClock();
		const [a, b] = memoryTransportPair();
		const options = { clock, random: seededRandom(1) };
		const running =
			side === "dial"
				? dialHandshake(a, { ...options, identity: workerIdentity, hello: helloFacts() })
				: acceptHandshake(a, { ...options, identity: backboneIdentity, welcome: () => sampleWelcomeBody });
		const failure = expect(running).rejects.toMatchObject({ code: "timeout" });
		await clock.advance(limits.handshakeMs - 1);
		expect(clock.pending).toBe(1);
		await clock.advance(1);
		await failure;
		expect(await b.ended).toMatchObject({ code: closeCodes.handshakeTimeout });
		expect(clock.pending).toBe(0);
	});

	it("stops at the signal", async () => {
		const clock = fakeClock();
		const [a] = memoryTransportPair();
		const aborter = new AbortController();
		const running = dialHandshake(a, {
			clock,
			random: seededRandom(1),
			identity: workerIdentity,
			hello: helloFacts(),
			signal: aborter.signal,
		});
		aborter.abort(new Error("stop"));
		await expect(running).rejects.toThrow("stop");
		expect(clock.pending).toBe(0);
	});
});
