import type { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import { failpoint } from "../../io/failpoint.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import type { ReceiptSubmission, ReceiptVerdict } from "../../ledger/submission.ts";

/** First wait after the hub could not be reached, and after it refused a receipt; both double up to the longest. */
const unreachableMs = 1_000;
const refusedMs = 60_000;
const waitMsMax = 600_000;
/** Receipts kept in memory until the hub has them: a month of one session's. */
const keptMax = 100_000;

interface Kept {
	submission: ReceiptSubmission;
	notBeforeMs: number;
	failures: number;
}

export interface OutboxParts {
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly post: (submission: ReceiptSubmission) => Promise<ReceiptVerdict>;
	/** The hub has it, durably. */
	readonly acknowledged: (id: string, verdict: Exclude<ReceiptVerdict, { status: "refused" }>) => void;
}

/** Receipts on their way to the hub: each is kept and sent again until the hub acknowledged it; one that is refused never holds up another. */
export class ReceiptOutbox {
	readonly #parts: OutboxParts;
	readonly #kept = new Map<string, Kept>();
	#running: Promise<void> | null = null;
	#cancelTimer: () => void = () => {};
	#closed = false;
	refused = 0;

	constructor(parts: OutboxParts) {
		this.#parts = parts;
	}

	get size(): number {
		return this.#kept.size;
	}

	/** Adds a receipt, or replaces it by itself with an answer that came later. @param id unique: session and number */
	add(id: string, submission: ReceiptSubmission): void {
		if (this.#kept.size >= keptMax) {
			this.#parts.log.error({ receipt: id, kept: this.#kept.size }, "too many receipts wait for the hub: dropped");
			return;
		}
		this.#kept.set(id, { submission, notBeforeMs: 0, failures: 0 });
		this.#run();
	}

	/** Sends all that waits now; resolves with true when the hub has everything, with false when some were refused or it is away. */
	async flush(): Promise<boolean> {
		await this.#running;
		for (const kept of this.#kept.values()) kept.notBeforeMs = 0;
		this.#run();
		await this.#running;
		return this.#kept.size === 0;
	}

	/** Stops sending; what is left is returned by the journals at the next start. */
	async close(): Promise<void> {
		this.#closed = true;
		this.#cancelTimer();
		await this.#running;
	}

	#run(): void {
		if (this.#running !== null || this.#closed) return;
		this.#cancelTimer();
		this.#running = this.#sendDue().finally(() => {
			this.#running = null;
			this.#schedule();
		});
	}

	async #sendDue(): Promise<void> {
		for (;;) {
			const now = this.#parts.clock.monotonic();
			const due = [...this.#kept].find(([, kept]) => kept.notBeforeMs <= now);
			if (due === undefined || this.#closed) return;
			await this.#send(...due);
		}
	}

	async #send(id: string, kept: Kept): Promise<void> {
		const { clock, random, log, post, acknowledged } = this.#parts;
		const { submission } = kept;
		let firstWaitMs = unreachableMs;
		try {
			failpoint("backbone.post.before");
			const verdict = await post(submission);
			failpoint("backbone.post.after");
			if (verdict.status !== "refused") {
				// A countersignature may have come while it was on its way: that one goes again.
				if (this.#kept.get(id) === kept) this.#kept.delete(id);
				return acknowledged(id, verdict);
			}
			this.refused++;
			firstWaitMs = refusedMs;
			log.error({ receipt: id, code: verdict.code, text: verdict.text }, "the hub refused a receipt");
		} catch (error) {
			log.warn({ receipt: id, error: (error as KvasirError).message }, "a receipt waits for the hub");
		}
		const waitMs = Math.min(waitMsMax, firstWaitMs * 2 ** Math.min(16, kept.failures++));
		kept.notBeforeMs = clock.monotonic() + waitMs * (0.5 + random.uniform() / 2);
	}

	#schedule(): void {
		if (this.#closed || this.#kept.size === 0) return;
		const next = Math.min(...[...this.#kept.values()].map(({ notBeforeMs }) => notBeforeMs));
		this.#cancelTimer = this.#parts.clock.after(Math.max(1, next - this.#parts.clock.monotonic()), () => this.#run());
	}
}
