import type { Clock } from "../../src/io/clock.ts";
import { type KeyPair, keyPairFromSeed } from "../../src/io/crypto.ts";
import type { Random } from "../../src/io/random.ts";
import { acceptHandshake, dialHandshake, type HelloFacts } from "../../src/protocol/handshake.ts";
import type { Transport } from "../../src/protocol/link.ts";
import { type MemoryTransportOptions, memoryTransportPair } from "../../src/protocol/memory-transport.ts";
import type { WelcomeBody } from "../../src/protocol/messages.ts";
import { bindPayout } from "../../src/protocol/payout.ts";
import { bytes, sampleWelcomeBody } from "./sample-messages.ts";
import { seededRandom } from "./seeded-random.ts";

export const workerIdentity = keyPairFromSeed(bytes(32, 101));
export const backboneIdentity = keyPairFromSeed(bytes(32, 102));

/** What an ordinary worker says about itself. */
export function helloFacts(identity: KeyPair = workerIdentity, change: Partial<HelloFacts> = {}): HelloFacts {
	return {
		instance: bytes(16, 1),
		epoch: 1,
		build: "test",
		engine: { class: "f32", device: "cpu", memoryBytes: 2 ** 30, threads: 1, selfCheck: new Uint8Array(0) },
		offer: sampleWelcomeBody.limits,
		holds: [],
		payout: bindPayout(identity, bytes(32, 5)),
		...change,
	};
}

export interface LinkPairOptions {
	readonly clock: Clock;
	readonly random?: Random;
	readonly hello?: HelloFacts;
	readonly welcome?: WelcomeBody;
	readonly worker?: KeyPair;
	readonly backbone?: KeyPair;
	readonly expectedBackbone?: Uint8Array;
	/** A pair of connections, worker's first; default: in memory. */
	readonly transports?: readonly [Transport, Transport];
	readonly memory?: MemoryTransportOptions;
}

/** Both sides of a real handshake over memory (or the transports given). */
export function handshakes(options: LinkPairOptions) {
	const { clock, random = seededRandom(11), worker = workerIdentity, backbone = backboneIdentity } = options;
	const [a, b] = options.transports ?? memoryTransportPair(options.memory);
	const dialled = dialHandshake(a, {
		identity: worker,
		hello: options.hello ?? helloFacts(worker),
		expectedBackbone: options.expectedBackbone,
		clock,
		random,
	});
	const accepted = acceptHandshake(b, {
		identity: backbone,
		welcome: () => options.welcome ?? sampleWelcomeBody,
		clock,
		random,
	});
	return { dialled, accepted, transports: [a, b] as const };
}

/** A linked pair, handshake done. */
export async function linkPair(options: LinkPairOptions) {
	const { dialled, accepted, transports } = handshakes(options);
	const [worker, backbone] = await Promise.all([dialled, accepted]);
	return { worker: worker.link, backbone: backbone.link, welcome: worker.welcome, hello: backbone.hello, transports };
}
