import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { keyPairFromSeed } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import { closeCodes } from "../protocol/messages.ts";
import { webSocketDialer } from "../worker/dialer.ts";
import { processUse } from "./process-use.ts";

/** Something WebSockets go through: where they are dialled, and the processes that carry them. */
export interface SplicePath {
	readonly name: string;
	/** `ws://host:port`. */
	readonly url: string;
	readonly pids: readonly number[];
}

export interface SpliceBenchOptions {
	/** Measured in turns, so that what else the machine does meets all of them. */
	readonly paths: readonly SplicePath[];
	/** Payload over each path, both ways together, bytes. */
	readonly bytes: number;
	/** Of one message. @default 128 KiB */
	readonly messageBytes?: number;
	readonly turns?: number;
	readonly clock: Clock;
	readonly random: Random;
	readonly signal?: AbortSignal;
}

export interface SpliceMeasurement {
	readonly path: string;
	/** Payload both ways, bytes. */
	readonly bytes: number;
	/** Of all its processes together, for 1e9 bytes of payload. */
	readonly cpuSecondsPerGb: number;
	/** The same of each process, in the order of `pids`. */
	readonly each: readonly number[];
	readonly gbPerSecond: number;
}

/** WebSockets at once, and messages under way on each: enough that no process waits for another. */
const sockets = 4;
const underWay = 4;

/**
 * Measures the processor time that each path takes for the same WebSocket traffic: whole messages sent, sent back by the
 * backbone's server and compared by length. Throws what `processUse` and dialling throw.
 */
export async function benchSplice(options: SpliceBenchOptions): Promise<SpliceMeasurement[]> {
	const { paths, bytes, messageBytes = 128 * 1024, turns = 4, clock } = options;
	const message = options.random.bytes(messageBytes);
	const count = Math.max(1, Math.ceil(bytes / (2 * messageBytes * sockets * turns)));
	const sums = paths.map(({ pids }) => ({ bytes: 0, ms: 0, cpuMs: pids.map(() => 0) }));
	// A gateway runs for weeks: what its compiler takes at the start is not counted.
	for (const path of paths) await exchange(path, { ...options, message, count });
	for (let turn = 0; turn < turns; turn++) {
		for (const [index, path] of paths.entries()) {
			const sum = sums[index]!;
			const before = await cpuOf(path);
			const startMs = clock.monotonic();
			await exchange(path, { ...options, message, count });
			sum.ms += clock.monotonic() - startMs;
			sum.bytes += 2 * messageBytes * sockets * count;
			for (const [process, cpuMs] of (await cpuOf(path)).entries()) sum.cpuMs[process]! += cpuMs - before[process]!;
		}
	}
	return paths.map(({ name }, index) => {
		const { bytes, ms, cpuMs } = sums[index]!;
		const each = cpuMs.map((own) => (own * 1e6) / bytes);
		const cpuSecondsPerGb = each.reduce((sum, own) => sum + own, 0);
		return { path: name, bytes, cpuSecondsPerGb, each, gbPerSecond: bytes / 1e6 / ms };
	});
}

async function cpuOf({ pids }: SplicePath): Promise<number[]> {
	return Promise.all(pids.map(async (pid) => (await processUse(pid)).cpuMs));
}

interface Exchange extends SpliceBenchOptions {
	readonly message: Uint8Array;
	/** Messages on each socket. */
	readonly count: number;
}

async function exchange(path: SplicePath, options: Exchange): Promise<void> {
	await Promise.all(Array.from({ length: sockets }, () => exchangeOnOne(path, options)));
}

/** One socket of a key of its own: sends `count` messages, some of them under way at once, and waits for all to come back. */
async function exchangeOnOne(path: SplicePath, { message, count, clock, random, signal }: Exchange): Promise<void> {
	const identity = keyPairFromSeed(random.bytes(32));
	const transport = await webSocketDialer({ url: path.url, identity, clock, random })({ signal });
	let abort = () => {};
	try {
		await new Promise<void>((resolve, reject) => {
			let sent = 0;
			let back = 0;
			const send = () => {
				if (sent++ < count) transport.send([message]);
			};
			const wrong = (what: string) => reject(new KvasirError("failed", `Cannot measure ${path.name}: ${what}`));
			transport.onMessage = (echo) => {
				if (echo.length !== message.length) wrong(`${echo.length} of ${message.length} bytes came back`);
				else if (++back === count) resolve();
				else send();
			};
			transport.ended.then(({ code, reason }) => wrong(`the connection ended (${code} ${reason})`));
			abort = () => reject(signal?.reason);
			signal?.addEventListener("abort", abort, { once: true });
			for (let first = 0; first < underWay; first++) send();
		});
	} finally {
		signal?.removeEventListener("abort", abort);
		transport.close(closeCodes.goingAway, "done");
		await transport.ended;
	}
}
