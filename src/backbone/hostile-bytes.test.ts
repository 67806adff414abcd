import fc from "fast-check";
import { expect, test } from "vitest";
import { settle } from "../../test/support/fake-clock.ts";
import { runs } from "../../test/support/long.ts";
import { type MemoryBackbone, memoryBackbone, requestOf, testModel } from "../../test/support/memory-backbone.ts";
import { askRemote, expectRight } from "../../test/support/remote-answers.ts";
import { sampleHandshakes, sampleSessions } from "../../test/support/sample-messages.ts";
import { sha256 } from "../io/crypto.ts";
import { encodeSession } from "../protocol/codec.ts";
import { memoryTransportPair } from "../protocol/memory-transport.ts";
import { closeCodes, type Hello } from "../protocol/messages.ts";
import { createSessionLink } from "../protocol/session-link.ts";
import { createTagger } from "../protocol/tag.ts";
import { WorkerLink } from "./links/worker-link.ts";

const [down, up] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
const hello = { ...(sampleHandshakes[0] as Hello), holds: [] };
const samples = sampleSessions.map((message) => {
	const { header, tensor } = encodeSession(message);
	return tensor === null ? header : Buffer.concat([header, tensor]);
});

/** A message of any kind, right for this side or not, as it is or with bytes changed, cut off and added. */
const messages = fc
	.record({
		base: fc.constantFrom(...samples),
		edits: fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 3 }),
		cut: fc.option(fc.nat(), { nil: null, freq: 4 }),
		more: fc.uint8Array({ maxLength: 4 }),
	})
	.map(({ base, edits, cut, more }) => {
		const copy = Uint8Array.from(base);
		for (const [at, value] of edits) copy[at % copy.length] = value;
		return Buffer.concat([cut === null ? copy : copy.subarray(0, cut % (copy.length + 1)), more]);
	});

/** A worker past its handshake, whose every message has the right tag: the strongest place to send anything from. */
async function hostileWorker({ clock, roster }: MemoryBackbone, number: number) {
	const [far, near] = memoryTransportPair();
	const peer = sha256(new Uint8Array([number & 255, (number >> 8) & 255, number >> 16]));
	const link = createSessionLink(near, {
		side: "backbone",
		peer,
		session: peer.subarray(0, 16),
		keys: { send: down, receive: up },
		heartbeatMs: 15_000,
		deadMs: 45_000,
		hidden: testModel.hidden,
		clock,
	});
	const worker = new WorkerLink({
		link,
		hello: { ...hello, key: peer, engine: { ...hello.engine, class: "f32" } },
		limits: hello.offer,
		model: testModel,
		relay: "",
		bytesRead: () => near.bytesRead,
		clock,
		listener: { holding() {}, draining() {}, countersigned() {}, sent() {} },
	});
	expect(await roster.admit(worker)).toBe(true);
	const tagger = createTagger(up);
	let end: number | null = null;
	link.ended.then(({ code }) => {
		end = code;
	});
	far.onMessage = () => {};
	return {
		send: (message: Uint8Array) => far.send([Buffer.concat([message, tagger.next(sha256(message))])]),
		end: () => end,
		leave: () => far.close(closeCodes.normal, ""),
	};
}

test(
	"whatever an admitted worker sends, its link goes on or ends with a code; others are asked and answer, nothing is left",
	async () => {
		const backbone = memoryBackbone();
		await backbone.join({ seed: 1 });
		await settle();
		const timersBefore = backbone.clock.pending;
		let workers = 0;
		let ended = 0;
		await fc.assert(
			fc.asyncProperty(fc.array(messages, { minLength: 1, maxLength: 20 }), async (sent) => {
				const worker = await hostileWorker(backbone, workers++);
				for (const message of sent) worker.send(message);
				await settle();
				const request = requestOf([[0, 5]], { layer: 1 });
				const { answer } = await askRemote(backbone, request);
				expectRight(request, answer);
				expect(answer.failures).toEqual([]);
				if (worker.end() !== null) ended++;
				expect([null, closeCodes.malformed, closeCodes.tooBig, closeCodes.normal]).toContain(worker.end());
				worker.leave();
				await settle();
				expect(backbone.roster.workers).toHaveLength(1);
				expect(backbone.clock.pending).toBe(timersBefore);
			}),
			{ numRuns: runs(300, 10_000) },
		);
		expect(ended).toBeGreaterThan(workers / 4);
		backbone.close();
		await settle();
	},
	runs(60_000, 1_800_000),
);
