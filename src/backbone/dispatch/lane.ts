import type { Clock } from "../../io/clock.ts";
import type { Dispatch, Partials, SessionMessage } from "../../protocol/messages.ts";
import type { LinkPace } from "./link-pace.ts";

// One worker's queue: what waits, what is in flight, what is owed though nobody waits for it, what came back too late.
// Knows ids, limits and deadlines; not what a vector means.

/** A dispatch that has no id yet: ids are given when it is sent, so that they ascend on the wire. */
export interface Work {
	readonly message: Omit<Dispatch, "kind" | "id" | "deadlineMs">;
	readonly phase: "prefill" | "decode";
	readonly pairs: number;
	/** Bytes of tensors both ways. */
	readonly bytes: number;
	/** Monotonic time after which an answer is late, sent or not. */
	readonly giveUpAtMs: number;
}

/** How a dispatch ended. `id` is null for work that was never sent. */
export type Outcome =
	| {
			readonly kind: "answered";
			readonly id: number;
			readonly partials: Partials;
			/** SHA-256 of the answer message: what its receipt is over. */
			readonly digest: Uint8Array;
			readonly elapsedMs: number;
	  }
	| { readonly kind: "refused"; readonly id: number; readonly code: string; readonly text: string }
	/** `cancelled`: before it was sent, or no answer followed by `giveUpAtMs`. */
	| { readonly kind: "late" | "closed" | "cancelled"; readonly id: number | null };

/** Work under way. */
export interface Asked {
	/** Never rejects, and settles by `giveUpAtMs` at the latest. */
	readonly outcome: Promise<Outcome>;
	/**
	 * Nobody waits any more; true: for something that had not ended. What was sent no longer counts against the limits, and the worker
	 * is told; whether it answers in time all the same, `outcome` says.
	 */
	readonly cancel: () => boolean;
}

export interface LaneLimits {
	readonly dispatchesMax: number;
	readonly inFlightBytesMax: number;
}

interface InFlight {
	readonly work: Work;
	readonly settle: (outcome: Outcome) => void;
	readonly id: number;
	readonly sentAtMs: number;
	/** Bytes in flight when it was sent, its own included. */
	readonly bytesAhead: number;
	readonly cancelTimer: () => void;
	cancelled: boolean;
}

interface Queued {
	readonly work: Work;
	readonly settle: (outcome: Outcome) => void;
	readonly cancelTimer: () => void;
}

/** What a message about a dispatch turned out to be: expected; cancelled, but in time; too late (paid nothing); or about an id that was never asked or already answered. */
export type Arrival = "expected" | "cancelled" | "stale" | "unknown";

/** Ids given up and never answered that are remembered, so that a late answer is told from an invented one. */
export const abandonedMax = 1024;

export class Lane {
	readonly #send: (message: SessionMessage) => void;
	readonly #clock: Clock;
	readonly #limits: LaneLimits;
	readonly #pace: LinkPace;
	readonly #decodes: Queued[] = [];
	readonly #prefills: Queued[] = [];
	readonly #inFlight = new Map<number, InFlight>();
	readonly #abandoned = new Set<number>();
	#nextId = 1;
	#inFlightBytes = 0;
	#queuedBytes = 0;
	#prefillsInFlight = 0;
	/** Of those in flight. */
	#cancelled = 0;
	#closed = false;

	constructor(parts: {
		send: (message: SessionMessage) => void;
		clock: Clock;
		limits: LaneLimits;
		pace: LinkPace;
	}) {
		this.#send = parts.send;
		this.#clock = parts.clock;
		this.#limits = parts.limits;
		this.#pace = parts.pace;
	}

	/** Bytes, both ways, queued or in flight. */
	get backlogBytes(): number {
		return this.#queuedBytes + this.#inFlightBytes;
	}

	get inFlightBytes(): number {
		return this.#inFlightBytes;
	}

	/** Dispatches that may still be answered in time, the cancelled ones included. */
	get inFlight(): number {
		return this.#inFlight.size;
	}

	/** Dispatches cancelled or given up that the worker has not reacted to. */
	get abandoned(): number {
		return this.#abandoned.size + this.#cancelled;
	}

	/** Sends the work as soon as the limits allow. */
	ask(work: Work): Asked {
		let settle!: (outcome: Outcome) => void;
		const outcome = new Promise<Outcome>((resolve) => {
			settle = resolve;
		});
		if (this.#closed) {
			settle({ kind: "closed", id: null });
			return { outcome, cancel: () => false };
		}
		const queued: Queued = {
			work,
			settle,
			cancelTimer: this.#clock.after(Math.max(0, work.giveUpAtMs - this.#clock.monotonic()), () => this.#late(queued)),
		};
		this.#queue(work.phase).push(queued);
		this.#queuedBytes += work.bytes;
		this.#pump();
		return { outcome, cancel: () => this.#cancel(queued) };
	}

	/** @param digest SHA-256 of the whole message */
	partials(partials: Partials, digest: Uint8Array): Arrival {
		const entry = this.#take(partials.id);
		if (entry === undefined) return this.#stale(partials.id);
		const elapsedMs = this.#clock.monotonic() - entry.sentAtMs;
		this.#pace.answered(entry.bytesAhead, elapsedMs);
		entry.settle({ kind: "answered", id: partials.id, partials, digest, elapsedMs });
		this.#pump();
		return entry.cancelled ? "cancelled" : "expected";
	}

	refused(id: number, code: string, text: string): Arrival {
		const entry = this.#take(id);
		if (entry === undefined) return this.#stale(id);
		entry.settle({ kind: "refused", id, code, text });
		this.#pump();
		return entry.cancelled ? "cancelled" : "expected";
	}

	/** Everything waiting ends as `closed`, at once. */
	close(): void {
		this.#closed = true;
		for (const queued of [...this.#decodes.splice(0), ...this.#prefills.splice(0)]) {
			queued.cancelTimer();
			queued.settle({ kind: "closed", id: null });
		}
		this.#queuedBytes = 0;
		for (const id of [...this.#inFlight.keys()]) this.#take(id)!.settle({ kind: "closed", id });
		this.#abandoned.clear();
	}

	#queue(phase: Work["phase"]): Queued[] {
		return phase === "decode" ? this.#decodes : this.#prefills;
	}

	/** Decode rows first; a prefill message only when no other is in flight, so that a decode row never waits long behind them. */
	#pump(): void {
		for (;;) {
			const next = this.#decodes[0] ?? (this.#prefillsInFlight === 0 ? this.#prefills[0] : undefined);
			if (next === undefined || !this.#hasRoom(next.work)) return;
			this.#queue(next.work.phase).shift();
			this.#queuedBytes -= next.work.bytes;
			this.#dispatch(next);
		}
	}

	#hasRoom(work: Work): boolean {
		const waitedFor = this.#inFlight.size - this.#cancelled;
		if (waitedFor === 0) return true;
		return waitedFor < this.#limits.dispatchesMax && this.#inFlightBytes + work.bytes <= this.#limits.inFlightBytesMax;
	}

	#dispatch({ work, settle, cancelTimer }: Queued): void {
		const id = this.#nextId++;
		const sentAtMs = this.#clock.monotonic();
		this.#inFlightBytes += work.bytes;
		if (work.phase === "prefill") this.#prefillsInFlight++;
		const bytesAhead = this.#inFlightBytes;
		this.#inFlight.set(id, { work, settle, cancelTimer, id, sentAtMs, bytesAhead, cancelled: false });
		const deadlineMs = Math.max(1, Math.ceil(work.giveUpAtMs - sentAtMs));
		this.#send({ kind: "dispatch", id, deadlineMs, ...work.message });
	}

	#late(queued: Queued): void {
		if (this.#leaveQueue(queued, "late")) return;
		const entry = this.#sent(queued);
		if (entry === undefined) return;
		this.#take(entry.id);
		this.#abandoned.add(entry.id);
		if (!entry.cancelled) this.#send({ kind: "cancel", id: entry.id });
		entry.settle({ kind: entry.cancelled ? "cancelled" : "late", id: entry.id });
		this.#pump();
	}

	#cancel(queued: Queued): boolean {
		if (this.#leaveQueue(queued, "cancelled")) return true;
		const entry = this.#sent(queued);
		if (entry === undefined || entry.cancelled) return false;
		this.#free(entry);
		entry.cancelled = true;
		this.#cancelled++;
		this.#send({ kind: "cancel", id: entry.id });
		this.#pump();
		return true;
	}

	#leaveQueue(queued: Queued, kind: "late" | "cancelled"): boolean {
		const queue = this.#queue(queued.work.phase);
		const position = queue.indexOf(queued);
		if (position < 0) return false;
		queue.splice(position, 1);
		this.#queuedBytes -= queued.work.bytes;
		queued.cancelTimer();
		queued.settle({ kind, id: null });
		return true;
	}

	#sent({ settle }: Queued): InFlight | undefined {
		return [...this.#inFlight.values()].find((entry) => entry.settle === settle);
	}

	#take(id: number): InFlight | undefined {
		const entry = this.#inFlight.get(id);
		if (entry === undefined) return undefined;
		this.#inFlight.delete(id);
		if (entry.cancelled) this.#cancelled--;
		else this.#free(entry);
		entry.cancelTimer();
		return entry;
	}

	#free({ work }: InFlight): void {
		this.#inFlightBytes -= work.bytes;
		if (work.phase === "prefill") this.#prefillsInFlight--;
	}

	#stale(id: number): Arrival {
		return this.#abandoned.delete(id) ? "stale" : "unknown";
	}
}
