import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import { closeCodes, type ModelFacts } from "../../protocol/messages.ts";
import { type EngineRefusal, refuseEngine } from "./engine-rules.ts";
import { decideTakeover } from "./takeover.ts";
import type { WorkerLink } from "./worker-link.ts";

/** How long the old link of a key has to show that it lives, when another instance of the key comes. */
const incumbentMs = 5000;
/** When a second machine with the same key may ask again. */
const keyInUseRetryMs = 300_000;
/** First quarantine of a key after a wrong answer; doubles each time. */
const quarantineMs = 600_000;
const quarantineMsMax = 7 * 86_400_000;
/** (key, instance) pairs whose epoch, and keys whose quarantine, are remembered. */
const rememberedMax = 65_536;

type Refused = "stale_epoch" | "key_in_use" | "malformed" | EngineRefusal["code"];

/** What happens to workers, for logs, screens and counters. */
export type RosterEvent =
	| { readonly event: "joined"; readonly worker: WorkerLink }
	| { readonly event: "left"; readonly worker: WorkerLink; readonly code: number; readonly reason: string }
	| {
			readonly event: "refused";
			readonly worker: WorkerLink;
			readonly reason: Refused;
	  }
	| { readonly event: "quarantined"; readonly worker: WorkerLink; readonly durationMs: number };

/** The connected workers: one link for each key, who may be asked, and how many hold each expert. */
export class Roster {
	readonly #model: ModelFacts;
	readonly #clock: Clock;
	readonly #log: Logger;
	readonly #emit: (event: RosterEvent) => void;
	readonly #accepts: readonly string[] | null;
	readonly #workers = new Map<string, WorkerLink>();
	readonly #epochs = new Map<string, number>();
	readonly #quarantines = new Map<string, { untilMs: number; times: number }>();
	readonly #deciding = new Map<string, Promise<unknown>>();

	constructor(parts: {
		model: ModelFacts;
		clock: Clock;
		log: Logger;
		emit: (event: RosterEvent) => void;
		/** Engine classes that may join (engine-rules.ts); null or absent: any. */
		accepts?: readonly string[] | null;
	}) {
		this.#model = parts.model;
		this.#clock = parts.clock;
		this.#log = parts.log;
		this.#emit = parts.emit;
		this.#accepts = parts.accepts ?? null;
	}

	get workers(): readonly WorkerLink[] {
		return [...this.#workers.values()];
	}

	/** Those that may be asked for experts now. */
	get usable(): readonly WorkerLink[] {
		return this.workers.filter((worker) => worker.usable);
	}

	/** Lets a worker in by the takeover rules, or says why not and ends its link; one newcomer of a key at a time. */
	async admit(worker: WorkerLink): Promise<boolean> {
		const refusal = refuseEngine(worker.hello.engine, this.#accepts);
		if (refusal !== null) {
			worker.bye(refusal.code, refusal.text, 0);
			return this.#refuse(worker, refusal.code);
		}
		const before = this.#deciding.get(worker.address) ?? Promise.resolve();
		const decision = before.then(() => this.#decide(worker));
		this.#deciding.set(worker.address, decision);
		const admitted = await decision;
		if (this.#deciding.get(worker.address) === decision) this.#deciding.delete(worker.address);
		return admitted;
	}

	/** No work for the key for a while, also over new links. */
	quarantine(worker: WorkerLink): void {
		const times = (this.#quarantines.get(worker.address)?.times ?? 0) + 1;
		const durationMs = Math.min(quarantineMsMax, quarantineMs * 2 ** (times - 1));
		remember(this.#quarantines, worker.address, { untilMs: this.#clock.monotonic() + durationMs, times });
		worker.quarantinedUntilMs = this.#clock.monotonic() + durationMs;
		worker.count("quarantined");
		this.#emit({ event: "quarantined", worker, durationMs });
	}

	/** (layers, experts): how many workers that may be asked hold each expert. */
	coverage(): Uint16Array {
		const holders = new Uint16Array(this.#model.layers * this.#model.experts);
		for (const worker of this.usable) {
			worker.holdings.each((layer, expert) => {
				holders[layer * this.#model.experts + expert]!++;
			});
		}
		return holders;
	}

	async #decide(worker: WorkerLink): Promise<boolean> {
		const { instance, epoch } = worker.hello;
		const owner = `${worker.address} ${Buffer.from(instance).toString("hex")}`;
		const incumbent = this.#workers.get(worker.address) ?? null;
		const verdict = decideTakeover(worker.hello, incumbent?.hello ?? null, this.#epochs.get(owner) ?? -1);
		if (verdict.kind === "stale") {
			worker.link.send({ kind: "refuse", id: null, code: "stale_epoch", text: String(verdict.epoch) });
			return this.#refuse(worker, "stale_epoch");
		}
		if (verdict.kind === "ask_incumbent" && (await incumbent!.showsLife(incumbentMs))) {
			worker.bye("key_in_use", "Another instance works under this key", keyInUseRetryMs, closeCodes.takenOver);
			return this.#refuse(worker, "key_in_use");
		}
		if (!worker.start(this.#model.modelId)) {
			worker.link.close(closeCodes.malformed, "holds reach outside the model");
			return this.#refuse(worker, "malformed");
		}
		if (incumbent !== null) {
			this.#workers.delete(worker.address);
			incumbent.bye("taken_over", "A newer link of this key took over", 0, closeCodes.takenOver);
			incumbent.lane.close();
		}
		remember(this.#epochs, owner, epoch);
		this.#enter(worker);
		return true;
	}

	#enter(worker: WorkerLink): void {
		const quarantine = this.#quarantines.get(worker.address);
		if (quarantine !== undefined) worker.quarantinedUntilMs = quarantine.untilMs;
		this.#workers.set(worker.address, worker);
		this.#log.info({ worker: worker.address, engine: worker.hello.engine.class }, "worker joined");
		this.#emit({ event: "joined", worker });
		worker.link.ended.then(({ code, reason }) => {
			if (this.#workers.get(worker.address) === worker) this.#workers.delete(worker.address);
			this.#log.info({ worker: worker.address, code, reason }, "worker left");
			this.#emit({ event: "left", worker, code, reason });
		});
	}

	#refuse(worker: WorkerLink, reason: Refused): false {
		// `kvasir doctor` computes nothing: it asks only whether the path leads here.
		const level = worker.hello.engine.class === "none" ? "debug" : "warn";
		this.#log[level]({ worker: worker.address, reason }, "worker refused");
		worker.link.close(closeCodes.takenOver, reason);
		this.#emit({ event: "refused", worker, reason });
		return false;
	}
}

/** Sets a key and forgets the oldest beyond the bound. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
	map.delete(key);
	map.set(key, value);
	if (map.size > rememberedMax) map.delete(map.keys().next().value!);
}
