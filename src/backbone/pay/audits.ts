import type { ExpertBatch } from "../../experts/engine.ts";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import type { ModelFacts } from "../../protocol/messages.ts";
import { floatsOfTensor } from "../../protocol/tensor.ts";
import type { WorkerLink } from "../links/worker-link.ts";
import { type Asked, batchOf, expectedAnswer, firstWrongVector } from "./compare-answer.ts";
import type { Evidence } from "./evidence.ts";
import { TaintLedger } from "./taint-ledger.ts";

/** ledger.md section 4: the share of dispatches, the first ones of each key, and the most of the backbone's time. */
const defaults = { share: 0.02, firstOfKey: 32, timeShareMax: 0.1 };
/** Audits that wait; beyond, a sampled dispatch is skipped, and counted. */
const waitingMax = 64;
/** Keys whose first dispatches are remembered. */
const keysMax = 65_536;

export interface AuditOptions {
	readonly share?: number;
	readonly firstOfKey?: number;
	readonly timeShareMax?: number;
	/** The class of `recompute`: equal classes that promise bits are compared by their bytes. */
	readonly engineClass: string;
	/** Computes pairs from the backbone's own file, one vector each. */
	readonly recompute: (batch: Omit<ExpertBatch, "weight">) => Promise<Float32Array>;
	/** Keeps what a failed audit found, so that it can be replayed. */
	readonly keep?: (evidence: Evidence) => Promise<void>;
}

/** An accepted answer. */
export interface AcceptedDispatch {
	readonly worker: WorkerLink;
	readonly id: number;
	readonly asked: Asked;
	/** The answer's tensor, f32 little-endian. */
	readonly vectors: Uint8Array;
	/** The sequences that used it; none where another worker was faster. */
	readonly sequence: readonly number[];
}

/** A wrong answer was found. `tainted`: the sequences that used this worker's answers since its last passed audit. */
export interface AuditEvent {
	readonly event: "audit_failed";
	readonly worker: WorkerLink;
	readonly id: number;
	readonly layer: number;
	readonly expert: number | null;
	readonly tainted: readonly number[];
}

export interface AuditParts extends AuditOptions {
	readonly model: ModelFacts;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	/** No receipt reaches a dispatch that is held. */
	readonly hold: (worker: WorkerLink, id: number) => void;
	readonly release: (worker: WorkerLink, id: number) => void;
	/** The held answer was wrong: nothing above the watermark is paid, and the key gets no work for a while. */
	readonly condemn: (worker: WorkerLink) => void;
	readonly emit: (event: AuditEvent) => void;
}

/** Recomputes a private, random share of the answers here, one at a time, beside the decode. */
export class Audits {
	readonly counts = { passed: 0, failed: 0, skipped: 0 };
	readonly #parts: AuditParts & typeof defaults;
	readonly #seen = new Map<string, number>();
	readonly #waiting: AcceptedDispatch[] = [];
	/** Of each link, one dispatch drawn at random from those since the last sampled one: the tail. */
	readonly #tails = new WeakMap<WorkerLink, { chosen: AcceptedDispatch; of: number }>();
	readonly #taints = new TaintLedger();
	readonly #startMs: number;
	#spentMs = 0;
	#running: Promise<void> | null = null;

	constructor(parts: AuditParts) {
		this.#parts = { ...defaults, ...parts };
		this.#startMs = parts.clock.monotonic();
	}

	/** Draws whether this answer is audited; called as soon as it is paid, before any receipt can reach it. */
	accepted(dispatch: AcceptedDispatch): void {
		const { worker, id, sequence } = dispatch;
		this.#taints.used(worker, id, sequence);
		if (this.#isDrawn(worker)) {
			this.#tails.delete(worker);
			this.#enqueue(dispatch);
			return;
		}
		const tail = this.#tails.get(worker);
		const of = (tail?.of ?? 0) + 1;
		const chosen = tail !== undefined && this.#parts.random.uniform() >= 1 / of ? tail.chosen : dispatch;
		this.#tails.set(worker, { chosen, of });
	}

	/** Audits one dispatch of the tail and resolves when nothing of this worker waits: before its last receipt. */
	async finish(worker: WorkerLink): Promise<void> {
		const tail = this.#tails.get(worker);
		this.#tails.delete(worker);
		if (tail !== undefined) this.#enqueue(tail.chosen);
		while (this.#running !== null && this.#waiting.some((waiting) => waiting.worker === worker)) await this.#running;
		await this.#running;
	}

	#isDrawn(worker: WorkerLink): boolean {
		const { share, firstOfKey, timeShareMax, random, clock } = this.#parts;
		const seen = this.#seen.get(worker.address) ?? 0;
		if (seen < firstOfKey) {
			this.#seen.set(worker.address, seen + 1);
			if (this.#seen.size > keysMax) this.#seen.delete(this.#seen.keys().next().value!);
			return true;
		}
		if (random.uniform() >= share) return false;
		if (this.#expectedMs <= timeShareMax * (clock.monotonic() - this.#startMs)) return true;
		this.counts.skipped++;
		return false;
	}

	/** Time that audits took so far, those that wait included at the same cost. */
	get #expectedMs(): number {
		const { passed, failed } = this.counts;
		return this.#spentMs * (1 + this.#waiting.length / Math.max(1, passed + failed));
	}

	#enqueue(dispatch: AcceptedDispatch): void {
		if (this.#waiting.length >= waitingMax) {
			this.counts.skipped++;
			return;
		}
		this.#parts.hold(dispatch.worker, dispatch.id);
		this.#waiting.push(dispatch);
		this.#running ??= this.#run().finally(() => {
			this.#running = null;
		});
	}

	async #run(): Promise<void> {
		await null; // so that #running is set before it is cleared
		for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
			await this.#audit(next);
			this.#waiting.shift();
		}
	}

	async #audit(dispatch: AcceptedDispatch): Promise<void> {
		const { model, clock, recompute, engineClass, log, release } = this.#parts;
		const { worker, id, asked, vectors } = dispatch;
		const startMs = clock.monotonic();
		try {
			const pairs = await recompute(batchOf(asked, model.hidden));
			const expected = expectedAnswer(asked, pairs, model.hidden);
			const exact = engineClass === worker.hello.engine.class && !engineClass.startsWith("ort:");
			const wrong = firstWrongVector(expected, floatsOfTensor(vectors), model.hidden, exact);
			if (wrong >= 0) return this.#failed(dispatch, wrong, expected);
			this.counts.passed++;
			const earlier = this.#waiting.filter((other) => other.worker === worker && other.id < id);
			this.#taints.passed(worker, Math.min(id, ...earlier.map((other) => other.id - 1)));
		} catch (error) {
			// Not the worker's fault: it is paid, and the audit counts as not made.
			this.counts.skipped++;
			log.error({ worker: worker.address, id, error: (error as Error).message }, "an audit could not be made");
		} finally {
			this.#spentMs += clock.monotonic() - startMs;
			release(worker, id);
		}
	}

	#failed({ worker, id, asked, vectors }: AcceptedDispatch, wrong: number, expected: Float32Array): void {
		const { model, clock, log, engineClass, condemn, keep, emit } = this.#parts;
		this.counts.failed++;
		condemn(worker);
		const tainted = this.#taints.take(worker);
		const expert = asked.mode === 0 ? asked.expert[wrong]! : null;
		log.error({ worker: worker.address, id, layer: asked.layer, expert, tainted }, "an audit failed: wrong answer");
		emit({ event: "audit_failed", worker, id, layer: asked.layer, expert, tainted });
		const evidence: Evidence = {
			model: { name: model.name, modelId: Buffer.from(model.modelId).toString("hex"), hidden: model.hidden },
			worker: worker.address,
			engineClass: worker.hello.engine.class,
			auditedBy: engineClass,
			session: worker.session,
			id,
			atMs: clock.now(),
			asked,
			answer: vectors,
			expected: new Uint8Array(expected.buffer, expected.byteOffset, expected.byteLength),
		};
		keep?.(evidence).catch((error) => log.error({ error: (error as Error).message }, "the evidence is lost"));
	}
}
