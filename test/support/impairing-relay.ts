import net, { type AddressInfo, type Socket } from "node:net";
import type { Random } from "../../src/io/random.ts";
import { seededRandom } from "./seeded-random.ts";

/** What a path does to bytes, each way. */
export interface Impairment {
	/** One way, milliseconds. */
	readonly delayMs?: number;
	/** Up to this much more, drawn for each chunk; order is kept, as TCP does. */
	readonly jitterMs?: number;
	/** Bytes a second, each way. */
	readonly bytesPerSecond?: number;
	/** The share of chunks that a loss holds up for `stallMs`, and with them everything behind. */
	readonly stallShare?: number;
	readonly stallMs?: number;
	/** A connection on which nothing moved for so long is cut, as proxies and NATs do. */
	readonly idleCutMs?: number;
	/** How: both ends are told, or nobody is. @default reset */
	readonly idleCut?: "reset" | "silent";
}

export type Direction = "up" | "down";

/** A TCP relay on loopback that is as bad as the internet: everything else about the connection is real. */
export interface ImpairingRelay extends AsyncDisposable {
	readonly port: number;
	/** Connections open now. */
	readonly open: number;
	/** Connections accepted so far. */
	readonly accepted: number;
	/** Where connections go; may change, for those to come. */
	target: { readonly host: string; readonly port: number };
	impairment: Impairment;
	/** From now on bytes of the connections open now vanish, and so does their end: nobody is told. */
	drop(...directions: readonly Direction[]): void;
	/** Breaks every connection with a reset. */
	reset(): void;
}

const chunkBytesMax = 16 * 1024;
/** A router's buffer: beyond it the sender is held up. */
const queuedBytesMax = 512 * 1024;

export async function startImpairingRelay(
	target: { host: string; port: number },
	impairment: Impairment = {},
	{ seed = 1, host = "127.0.0.1" } = {},
): Promise<ImpairingRelay> {
	const random = seededRandom(seed);
	const pairs = new Set<{ near: Socket; far: Socket; up: Lane; down: Lane }>();
	let accepted = 0;
	const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
		accepted++;
		const far = net.connect({ ...relay.target, allowHalfOpen: true, noDelay: true });
		const settings = () => relay.impairment;
		const pair = { near, far, up: new Lane(near, far, settings, random), down: new Lane(far, near, settings, random) };
		pairs.add(pair);
		cutWhenIdle(pair, settings());
		for (const [socket, other] of [
			[near, far],
			[far, near],
		] as const) {
			socket.on("error", () => {});
			socket.once("close", () => {
				if (other.destroyed) pairs.delete(pair);
				if (!pair.up.dropping && !pair.down.dropping) other.destroy();
			});
		}
	});
	await new Promise<void>((resolve) => server.listen(0, host, resolve));
	const relay: ImpairingRelay = {
		port: (server.address() as AddressInfo).port,
		target,
		impairment,
		get open() {
			return pairs.size;
		},
		get accepted() {
			return accepted;
		},
		drop(...directions) {
			for (const pair of pairs) for (const direction of directions) pair[direction].dropping = true;
		},
		reset() {
			for (const { near, far } of pairs) {
				near.resetAndDestroy();
				far.resetAndDestroy();
			}
		},
		async [Symbol.asyncDispose]() {
			for (const { near, far } of pairs) {
				near.destroy();
				far.destroy();
			}
			await new Promise((resolve) => server.close(resolve));
		},
	};
	return relay;
}

function cutWhenIdle(
	{ near, far, up, down }: { near: Socket; far: Socket; up: Lane; down: Lane },
	{ idleCutMs, idleCut = "reset" }: Impairment,
): void {
	if (idleCutMs === undefined) return;
	let timer: NodeJS.Timeout | undefined;
	const rearm = () => {
		clearTimeout(timer);
		timer = setTimeout(() => {
			if (idleCut === "reset") for (const socket of [near, far]) socket.resetAndDestroy();
			else up.dropping = down.dropping = true;
		}, idleCutMs);
	};
	for (const socket of [near, far]) socket.on("data", rearm).once("close", () => clearTimeout(timer));
	rearm();
}

/** One direction of one connection: a queue of (due time, chunk). */
class Lane {
	dropping = false;
	readonly #from: Socket;
	readonly #to: Socket;
	readonly #settings: () => Impairment;
	readonly #random: Random;
	readonly #queue: { dueMs: number; chunk: Buffer | null }[] = [];
	#queuedBytes = 0;
	#lineFreeMs = 0;
	#lastDueMs = 0;
	#timer: NodeJS.Timeout | null = null;

	constructor(from: Socket, to: Socket, settings: () => Impairment, random: Random) {
		this.#from = from;
		this.#to = to;
		this.#settings = settings;
		this.#random = random;
		from.on("data", (data: Buffer) => {
			for (let at = 0; at < data.length; at += chunkBytesMax) this.#push(data.subarray(at, at + chunkBytesMax));
		});
		from.on("end", () => this.#push(null));
		from.once("close", () => {
			if (this.#timer !== null) clearTimeout(this.#timer);
		});
	}

	#push(chunk: Buffer | null): void {
		if (this.dropping) return;
		const { delayMs = 0, jitterMs = 0, bytesPerSecond, stallShare = 0, stallMs = 0 } = this.#settings();
		const now = performance.now();
		this.#lineFreeMs = Math.max(now, this.#lineFreeMs);
		if (bytesPerSecond !== undefined) this.#lineFreeMs += ((chunk?.length ?? 0) / bytesPerSecond) * 1000;
		const lossMs = stallShare > 0 && this.#random.uniform() < stallShare ? stallMs : 0;
		const dueMs = this.#lineFreeMs + delayMs + this.#random.uniform() * jitterMs + lossMs;
		this.#lastDueMs = Math.max(this.#lastDueMs, dueMs);
		this.#queue.push({ dueMs: this.#lastDueMs, chunk });
		this.#queuedBytes += chunk?.length ?? 0;
		if (this.#queuedBytes > queuedBytesMax) this.#from.pause();
		this.#arm();
	}

	#arm(): void {
		const next = this.#queue[0];
		if (next === undefined || this.#timer !== null) return;
		this.#timer = setTimeout(() => this.#release(), Math.max(0, next.dueMs - performance.now()));
	}

	#release(): void {
		this.#timer = null;
		const now = performance.now();
		while (this.#queue.length > 0 && this.#queue[0]!.dueMs <= now) {
			const { chunk } = this.#queue.shift()!;
			this.#queuedBytes -= chunk?.length ?? 0;
			if (this.dropping) continue;
			if (chunk === null) this.#to.end();
			else this.#to.write(chunk);
		}
		if (this.#queuedBytes <= queuedBytesMax / 2) this.#from.resume();
		this.#arm();
	}
}
