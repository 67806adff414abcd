import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { keyPairFromSeed } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import type { DialLoop } from "../worker/dial.ts";
import { startIdleWorker } from "./idle-worker.ts";
import { processUse } from "./process-use.ts";

export interface IdleLinksOptions {
	/** `ws://127.0.0.1:port` of a gateway whose admission rate allows this many. */
	readonly url: string;
	readonly links: number;
	/** How long they are watched once all are there, milliseconds. */
	readonly watchMs: number;
	/** Processes that carry them. */
	readonly carriers: readonly { readonly name: string; readonly pid: number }[];
	/** Links that the backbone has now: what its workers claim is not enough. */
	readonly arrived: () => number;
	readonly clock: Clock;
	readonly random: Random;
	readonly signal: AbortSignal;
}

/** What idle links cost a process that carries them. */
export interface CarrierUse {
	readonly name: string;
	/** Resident memory that came with the links, for each of them. */
	readonly bytesPerLink: number;
	/** Of one core, while nothing but heartbeats goes through: 0 to 1. */
	readonly cores: number;
}

export interface IdleLinks {
	readonly links: number;
	/** Links that ended while they were watched. */
	readonly lost: number;
	readonly carriers: readonly CarrierUse[];
}

/** Dials at once: more would only wait for one another's handshakes. */
const dialling = 32;
/** Links from one address of this machine: gateways let in 256 of one address, and 80 at once. */
const linksPerAddress = 64;
const settleMs = 2_000;
const joinMs = 30_000;

/** Brings idle workers through a gateway and a hub, keeps them for a while and measures both. Throws `failed` off Linux, or the first refusal. */
export async function measureIdleLinks(options: IdleLinksOptions): Promise<IdleLinks> {
	const { links, clock, carriers, signal, arrived } = options;
	const workers: JoinedWorker[] = [];
	let lost = 0;
	const useOf = () => Promise.all(carriers.map(({ pid }) => processUse(pid)));
	const before = await useOf();
	try {
		for (let first = 0; first < links; first += dialling) {
			const numbers = Array.from({ length: Math.min(dialling, links - first) }, (_, i) => first + i);
			await Promise.all(numbers.map((number) => join(number, options, workers, () => lost++)));
			signal.throwIfAborted();
		}
		await clock.sleep(settleMs, signal);
		const [start, startMs] = [await useOf(), clock.monotonic()];
		await clock.sleep(options.watchMs, signal);
		const [end, ms] = [await useOf(), clock.monotonic() - startMs];
		return {
			links: arrived(),
			lost,
			carriers: carriers.map(({ name }, i) => ({
				name,
				bytesPerLink: (end[i]!.residentBytes - before[i]!.residentBytes) / links,
				cores: (end[i]!.cpuMs - start[i]!.cpuMs) / ms,
			})),
		};
	} finally {
		for (const { ending } of workers) ending.abort();
		await Promise.allSettled(workers.map(({ loop }) => loop.ended));
	}
}

interface JoinedWorker {
	readonly loop: DialLoop;
	readonly ending: AbortController;
}

/** Resolves when the worker is connected; rejects with why it is not, and does not count what happens later but its loss. */
function join(number: number, options: IdleLinksOptions, workers: JoinedWorker[], onLost: () => void): Promise<void> {
	const { url, clock, random } = options;
	const ending = new AbortController();
	return new Promise((resolve, reject) => {
		let connected = false;
		const fail = (state: string) =>
			reject(new KvasirError("failed", `Cannot bring idle worker ${number} in: ${state}`));
		const cancel = clock.after(joinMs, () => fail(`it is not there after ${joinMs} ms`));
		const loop = startIdleWorker({
			url,
			identity: keyPairFromSeed(random.bytes(32)),
			from: loopbackAddress(number),
			clock,
			random,
			signal: ending.signal,
			onEvent(event) {
				if (event.event === "connected") {
					cancel();
					connected = true;
					resolve();
				} else if (event.event === "disconnected" && connected) onLost();
				else if (event.event === "disconnected") fail(`${event.code}, ${event.message}`);
			},
		});
		loop.ended.catch(reject);
		workers.push({ loop, ending });
	});
}

/** Linux takes connections from every address of 127.0.0.0/8. */
export function loopbackAddress(number: number): string {
	const host = 1 + Math.floor(number / linksPerAddress);
	return `127.1.${host >> 8}.${host & 255}`;
}
