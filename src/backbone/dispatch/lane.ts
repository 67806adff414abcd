import type { Clock } from "../../io/clock.ts";
import type { Dispatch, Partials, SessionMessage } from "../../protocol/messages.ts";
import type { LinkPace } from "./link-pace.ts";

// One worker's queue: what waits, what is in flight, what came back too late. Knows ids, limits and deadlines; not what a vector means.

/** A dispatch that has no id yet: ids are given when it is sent, so that they ascend on the wire. */
export interface Work {
	readonly message: Omit<Dispatch, "kind" | "id" | "deadlineMs">;
	readonly phase: "prefill" | "decode";
	readonly pairs: number;
	/** Bytes of tensors both ways. */
	readonly bytes: number;
	/** Monotonic time after which nobody waits any more, sent or not. */
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
	| { readonly kind: "late" | "closed" | "cancelled"; readonly id: number | null };

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
}

interface Queued {
	readonly work: Work;
	readonly settle: (outcome: Outcome) => void;
	readonly cancelTimer: () => void;
}

/** What a message about a dispatch turned out to be: expected, too late (paid nothing), or about an id that was never asked or already answered. */
export type Arrival =
	| { readonly kind: "settled" | "unknown" }
	| { readonly kind: "stale"; readonly reason: "late" | "cancelled_late" };

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
	readonly #abandoned = new Map<number, "late" | "cancelled_late">();
	#nextId = 1;
	#inFlightBytes = 0;
	#queuedBytes = 0;
	#prefillsInFlight = 0;
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

	get inFlight(): number {
		return this.#inFlight.size;
	}

	/** Dispatches given up that the worker has not reacted to. */
	get abandoned(): number {
		return this.#abandoned.size;
	}

	/** Sends the work as soon as the limits allow. `outcome` never rejects and settles by `giveUpAtMs` at the latest. */
	ask(work: Work): { readonly outcome: Promise<Outcome>; readonly cancel: () => void } {
		let settle!: (outcome: Outcome) => void;
		const outcome = new Promise<Outcome>((resolve) => {
			settle = resolve;
		});
		if (this.#closed) {
			settle({ kind: "closed", id: null });
			return { outcome, cancel() {} };
		}
		const queued: Queued = {
			work,
			settle,
			cancelTimer: this.#clock.after(Math.max(0, work.giveUpAtMs - this.#clock.monotonic()), () =>
				this.#giveUp(queued, "late"),
			),
		};
		this.#queue(work.phase).push(queued);
		this.#queuedBytes += work.bytes;
		this.#pump();
		return { outcome, cancel: () => this.#giveUp(queued, "cancelled") };
	}

	/** @param digest SHA-256 of the whole message */
	partials(partials: Partials, digest: Uint8Array): Arrival {
		const entry = this.#take(partials.id);
		if (entry === undefined) return this.#stale(partials.id);
		const elapsedMs = this.#clock.monotonic() - entry.sentAtMs;
		this.#pace.answered(entry.bytesAhead, elapsedMs);
		entry.settle({ kind: "answered", id: partials.id, partials, digest, elapsedMs });
		this.#pump();
		return { kind: "settled" };
	}

	refused(id: number, code: string, text: string): Arrival {
		const entry = this.#take(id);
		if (entry === undefined) return this.#stale(id);
		entry.settle({ kind: "refused", id, code, text });
		this.#pump();
		return { kind: "settled" };
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
		if (this.#inFlight.size === 0) return true;
		return (
			this.#inFlight.size < this.#limits.dispatchesMax &&
			this.#inFlightBytes + work.bytes <= this.#limits.inFlightBytesMax
		);
	}

	#dispatch({ work, settle, cancelTimer }: Queued): void {
		const id = this.#nextId++;
		const sentAtMs = this.#clock.monotonic();
		this.#inFlightBytes += work.bytes;
		if (work.phase === "prefill") this.#prefillsInFlight++;
		this.#inFlight.set(id, { work, settle, cancelTimer, id, sentAtMs, bytesAhead: this.#inFlightBytes });
		const deadlineMs = Math.max(1, Math.ceil(work.giveUpAtMs - sentAtMs));
		this.#send({ kind: "dispatch", id, deadlineMs, ...work.message });
	}

	/** The deadline passed, or nobody needs the answer any more. */
	#giveUp(queued: Queued, kind: "late" | "cancelled"): void {
		const queue = this.#queue(queued.work.phase);
		const position = queue.indexOf(queued);
		if (position >= 0) {
			queue.splice(position, 1);
			this.#queuedBytes -= queued.work.bytes;
			queued.cancelTimer();
			queued.settle({ kind, id: null });
			return;
		}
		const entry = [...this.#inFlight.values()].find(({ settle }) => settle === queued.settle);
		if (entry === undefined) return;
		this.#take(entry.id);
		this.#abandoned.set(entry.id, kind === "late" ? "late" : "cancelled_late");
		this.#send({ kind: "cancel", id: entry.id });
		entry.settle({ kind, id: entry.id });
		this.#pump();
	}

	#take(id: number): InFlight | undefined {
		const entry = this.#inFlight.get(id);
		if (entry === undefined) return undefined;
		this.#inFlight.delete(id);
		this.#inFlightBytes -= entry.work.bytes;
		if (entry.work.phase === "prefill") this.#prefillsInFlight--;
		entry.cancelTimer();
		return entry;
	}

	#stale(id: number): Arrival {
		const reason = this.#abandoned.get(id);
		if (reason === undefined) return { kind: "unknown" };
		this.#abandoned.delete(id);
		return { kind: "stale", reason };
	}
}
