import { addressOf } from "../../io/base58.ts";
import type { Clock } from "../../io/clock.ts";
import { equalBytes } from "../../io/crypto.ts";
import { failpoint } from "../../io/failpoint.ts";
import { limits } from "../../protocol/limits.ts";
import type { Link } from "../../protocol/link.ts";
import {
	type Assign,
	type Bye,
	type Countersign,
	closeCodes,
	type Drain,
	type Hello,
	type ModelFacts,
	type Offer,
	type SessionMessage,
} from "../../protocol/messages.ts";
import { Samples } from "../decode/samples.ts";
import { Holdings } from "../dispatch/holdings.ts";
import { type Arrival, abandonedMax, Lane } from "../dispatch/lane.ts";
import { LinkPace } from "../dispatch/link-pace.ts";
import type { Holder } from "../dispatch/plan.ts";

/** Tensor bytes one message may carry beside its header (8 bytes a pair at most). */
const tensorBytesMax = limits.messageBytes - 512 * 1024;
/** A message should occupy a link for about this long at most. */
const messageMs = 1000;
/** How long a worker is left alone after failing, at first and at most. */
const pauseMs = 500;
const pauseMsMax = 60_000;

/** How often a link is looked at while it is asked for a sign of life. */
const lookEveryMs = 20;

/** Who hears of what a worker says that is not an answer to a dispatch. */
export interface WorkerListener {
	/** The set it serves changed. */
	holding(worker: WorkerLink): void;
	/** It asked for no more work. */
	draining(worker: WorkerLink, drain: Drain): void;
	/** It has an opinion on a receipt. */
	countersigned(worker: WorkerLink, countersign: Countersign): void;
	/** A dispatch was sent; its id is now open in the session's account. */
	sent(worker: WorkerLink, id: number): void;
}

/** One connected worker: its link, what it holds, how fast it is, what it is doing, and whether to ask it. */
export class WorkerLink implements Holder {
	/** Base58 of its key. */
	readonly address: string;
	/** Hex of the link's session. */
	readonly session: string;
	readonly hello: Hello;
	readonly link: Link;
	readonly holdings: Holdings;
	readonly pace = new LinkPace();
	readonly lane: Lane;
	/** The hub's id of the spliced connection; empty where no hub carried it. */
	readonly relay: string;
	/** Wall clock when it joined. */
	readonly sinceMs: number;
	/** Answers by what became of them: answered, late, stale, and refusals by their code. */
	readonly outcomes = new Map<string, number>();
	answeredPairs = 0;
	/** Milliseconds from the send to the whole answer, and of those the worker's own count of computing. */
	readonly roundTripsMs = new Samples();
	readonly computesMs = new Samples();
	draining = false;
	quarantinedUntilMs = 0;
	readonly #limits: Offer;
	readonly #clock: Clock;
	readonly #bytesRead: () => number;
	readonly #rowBytes: number;
	#failuresInARow = 0;
	#pausedUntilMs = 0;

	constructor(parts: {
		link: Link;
		hello: Hello;
		limits: Offer;
		model: ModelFacts;
		relay: string;
		/** Bytes that arrived on the connection so far. */
		bytesRead: () => number;
		clock: Clock;
		listener: WorkerListener;
	}) {
		const { link, hello, model, clock, listener } = parts;
		this.address = addressOf(link.peer);
		this.session = Buffer.from(link.session).toString("hex");
		this.link = link;
		this.hello = hello;
		this.relay = parts.relay;
		this.sinceMs = clock.now();
		this.#limits = parts.limits;
		this.#clock = clock;
		this.#bytesRead = parts.bytesRead;
		this.#rowBytes = model.hidden * 4;
		this.holdings = new Holdings(model);
		this.lane = new Lane({
			clock,
			pace: this.pace,
			limits: parts.limits,
			send: (message) => {
				if (message.kind !== "dispatch") return void link.send(message);
				listener.sent(this, message.id);
				failpoint("backbone.dispatch.before");
				link.send(message);
				failpoint("backbone.dispatch.after");
			},
		});
		link.ended.then(() => this.lane.close());
		link.onMessage = (message, _, digest) => this.#receive(message, digest, listener);
	}

	get floorMs(): number {
		return Math.max(this.pace.floorMs, this.link.roundTripMs ?? 0);
	}

	get bytesPerMs(): number {
		return this.pace.bytesPerMs;
	}

	get backlogBytes(): number {
		return this.lane.backlogBytes;
	}

	get rowsMax(): number {
		return Math.max(1, Math.min(limits.rows, this.#limits.rowsMax));
	}

	get messageBytesMax(): number {
		const paced = Math.max(this.#rowBytes, this.pace.bytesPerMs * messageMs);
		return Math.min(tensorBytesMax, this.#limits.inFlightBytesMax / 2, paced);
	}

	/** An audit of its key failed, and its time is not over. */
	get quarantined(): boolean {
		return this.#clock.monotonic() < this.quarantinedUntilMs;
	}

	/** May it be asked now? */
	get usable(): boolean {
		return !this.draining && !this.quarantined && this.#clock.monotonic() >= this.#pausedUntilMs;
	}

	/** Starts with the experts named in `hello`; false when they reach outside the model. */
	start(modelId: Uint8Array): boolean {
		return this.holdings.replace(this.hello.holds.filter((range) => equalBytes(range.modelId, modelId)));
	}

	/** Asks its peer for a sign of life, in whatever bytes; false when none came in time or the link ended. */
	async showsLife(timeoutMs: number): Promise<boolean> {
		let over = false;
		this.link.ended.then(() => {
			over = true;
		});
		const before = this.#bytesRead();
		const giveUpAtMs = this.#clock.monotonic() + timeoutMs;
		this.link.send({ kind: "ping", sequence: 0, senderTimeUs: Math.round(this.#clock.monotonic() * 1000) });
		while (!over && this.#clock.monotonic() < giveUpAtMs) {
			await this.#clock.sleep(lookEveryMs);
			if (this.#bytesRead() !== before) return true;
		}
		return false;
	}

	assign(assign: Omit<Assign, "kind">): void {
		this.link.send({ kind: "assign", ...assign });
	}

	/** An answer was accepted. @param waitedFor false: another worker was faster, which is no success */
	succeeded(pairs: number, elapsedMs: number, computeUs: number, waitedFor: boolean): void {
		if (waitedFor) this.#failuresInARow = 0;
		this.answeredPairs += pairs;
		this.roundTripsMs.add(elapsedMs);
		this.computesMs.add(computeUs / 1000);
		this.count("answered");
	}

	/** It was late, refused or sent nothing usable: leave it alone for a while that doubles each time. */
	failed(outcome: string): void {
		this.count(outcome);
		if (this.lane.abandoned > abandonedMax) this.malformed("too many dispatches without any reaction");
		const now = this.#clock.monotonic();
		if (now >= this.#pausedUntilMs) this.#failuresInARow++;
		// A worker that went silent shows it is back by reacting to what it owes; until then every dispatch would cost a whole deadline.
		const owes = (outcome === "late" || outcome === "overtaken") && this.lane.abandoned > 0;
		this.#pausedUntilMs = owes ? now + pauseMsMax : Math.max(this.#pausedUntilMs, now + this.#pauseMs());
	}

	count(outcome: string): void {
		this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
	}

	/** No new work from now on, and says so. */
	drain(reason: string, graceMs: number): void {
		this.draining = true;
		this.link.send({ kind: "drain", reason, graceMs });
	}

	/** Says goodbye and ends the link. @param retryAfterMs 0: do not come back */
	bye(code: string, text: string, retryAfterMs: number, closeCode: number = closeCodes.normal): void {
		this.link.send({ kind: "bye", code, text, retryAfterMs } satisfies Bye);
		this.link.close(closeCode, code);
	}

	/** It broke the protocol: the link ends, and with it everything that waits for it. */
	malformed(state: string): void {
		this.count("malformed");
		this.draining = true;
		this.lane.close();
		this.link.close(closeCodes.malformed, state);
	}

	#receive(message: SessionMessage, digest: Uint8Array, listener: WorkerListener): void {
		switch (message.kind) {
			case "partials":
				this.#arrived(this.lane.partials(message, digest), "an answer to an id that is not open");
				break;
			case "refuse":
				if (message.id === null) this.count(`refuse_${message.code}`);
				// A refusal that crossed our cancel may come after the answer: harmless, unlike a second answer.
				else this.#arrived(this.lane.refused(message.id, message.code, message.text), null);
				break;
			case "holding":
				if (this.holdings.replace(message.ready)) listener.holding(this);
				else this.malformed("holding reaches outside the model");
				break;
			case "countersign":
				listener.countersigned(this, message);
				break;
			case "drain":
				this.draining = true;
				listener.draining(this, message);
				break;
			case "bye":
				this.draining = true;
				this.link.close(closeCodes.normal, message.code);
				break;
			// The link itself answers pings and unknown kinds, and refuses what only a backbone sends.
		}
	}

	/** @param offence what an unknown id is; null: nothing */
	#arrived(arrival: Arrival, offence: string | null): void {
		if (arrival === "unknown" && offence !== null) this.malformed(offence);
		if (arrival === "unknown" || arrival === "expected") return;
		if (arrival === "stale") this.count("stale");
		const now = this.#clock.monotonic();
		if (this.lane.abandoned === 0 && this.#pausedUntilMs > now) this.#pausedUntilMs = now + this.#pauseMs();
	}

	#pauseMs(): number {
		return Math.min(pauseMsMax, pauseMs * 2 ** Math.min(16, this.#failuresInARow - 1));
	}
}
