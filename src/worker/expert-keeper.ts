import { KvasirError } from "../errors.ts";
import type { ExpertEngine } from "../experts/engine.ts";
import type { Clock } from "../io/clock.ts";
import { equalBytes } from "../io/crypto.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import type { Model } from "../model/model.ts";
import { type Manifest, manifestBytesMax, openManifest } from "../protocol/manifest.ts";
import type { Assign, ExpertRange, ModelFacts } from "../protocol/messages.ts";
import { type ExpertSource, fileSource, seedSource, sliceSource } from "./expert-source.ts";
import { expertsOf, HeldExperts } from "./held-experts.ts";
import { LateEngine } from "./late-engine.ts";
import { changeHoldings } from "./load-experts.ts";
import type { SliceCache } from "./slice-cache.ts";
import type { SliceClient } from "./slice-client.ts";
import { fetchText } from "./slice-fetch.ts";
import type { WorkerEvent } from "./worker-event.ts";

/** At most this often the backbone hears of a set that grows. */
const tellMs = 250;

/** A person has to do something before this worker can serve. */
const pointless: ReadonlySet<string> = new Set(["model_mismatch", "model_missing", "gpu_unavailable", "usage"]);

/** How slices and manifests are had from the gateway. */
export interface SliceAccess {
	readonly cache: SliceCache;
	client(backbone: Uint8Array, model: string): SliceClient;
}

/** What the operator wants held, once the model's dimensions are known. Throws `usage`. */
export type Hold = (model: Pick<ModelFacts, "layers" | "experts">) => readonly ExpertRange[];

export interface KeeperParts {
	readonly engine: ExpertEngine;
	/** The file at hand; null: experts come as slices. */
	readonly model: Pick<Model, "name" | "modelId" | "weights" | "weightsKind"> | null;
	/** null: what the backbone assigns. */
	readonly hold: Hold | null;
	/** null: nothing can be fetched, and a file is not compared with a manifest. */
	readonly slices: SliceAccess | null;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	readonly signal: AbortSignal;
	readonly onEvent: (event: WorkerEvent) => void;
	/** The set that is ready changed. */
	readonly onChanged: () => void;
	/** An assignment cannot be followed beyond what is held now. */
	readonly onShort: (state: string) => void;
	/** Going on is pointless. */
	readonly onFailed: (error: KvasirError) => void;
}

/** Keeps in the engine what the operator or the backbone wants held, and knows what is ready. One change at a time; the newest wish counts. */
export class ExpertKeeper {
	readonly held = new HeldExperts();
	readonly #parts: KeeperParts;
	#model: ModelFacts | null = null;
	#backbone: Uint8Array | null = null;
	#source: ExpertSource | null = null;
	#wish = new AbortController();
	#changing: Promise<unknown> = Promise.resolve();
	#toldAtMs = Number.NEGATIVE_INFINITY;
	#cancelTelling: (() => void) | null = null;

	constructor(parts: KeeperParts) {
		this.#parts = parts;
		const { model } = parts;
		if (model !== null) this.#source = model.weightsKind === "synthetic" ? seedSource(model) : fileSource(model);
	}

	/** The model that is held, or will be; null before the first backbone where no file says. */
	get modelId(): Uint8Array | null {
		return this.#parts.model?.modelId ?? this.#model?.modelId ?? null;
	}

	/**
	 * Loads what the operator wants from the file at hand. Throws what loading throws.
	 *
	 * @param hasLinks whether somebody is there to hear of a set that grows
	 */
	async loadOwn(model: Pick<ModelFacts, "layers" | "experts">, hasLinks: () => boolean): Promise<void> {
		const { hold, signal } = this.#parts;
		const onLoaded = () => {
			if (hasLinks()) this.#tellSoon();
		};
		if (hold !== null) await this.#change(hold(model), signal, onLoaded);
	}

	/** The main backbone's model: without a file it is adopted, and another one before is dropped. Throws `model_mismatch`, `model_missing`. */
	meet(backbone: Uint8Array, model: ModelFacts): void {
		const { model: file, slices, hold } = this.#parts;
		this.#backbone = backbone;
		if (file !== null) {
			if (!equalBytes(file.modelId, model.modelId)) throw otherModel(file.name, model.name);
			if (this.#model === null) this.#compareFile(model);
			this.#model = model;
			return;
		}
		if (slices === null)
			throw new KvasirError("model_missing", "Cannot serve: no model file and nowhere to fetch from");
		if (this.#model !== null && equalBytes(this.#model.modelId, model.modelId)) return;
		const wanted = hold?.(model) ?? [];
		this.#model = model;
		this.#source = null;
		for (const [layer, expert] of [...expertsOf(this.held.ranges())]) this.held.delete(layer, expert);
		this.#want(wanted);
	}

	/** The main backbone's wish, where the operator has none. */
	assigned({ wanted }: Assign): void {
		const model = this.#model;
		if (this.#parts.hold !== null) this.#parts.onShort("holds what its operator said");
		if (this.#parts.hold !== null || model === null) return;
		const { layers, experts } = model;
		this.#want(wanted.filter(({ layer, first, count }) => layer < layers && first + count <= experts));
	}

	#want(ranges: readonly ExpertRange[]): void {
		this.#wish.abort();
		this.#wish = new AbortController();
		const signal = AbortSignal.any([this.#wish.signal, this.#parts.signal]);
		this.#changing = this.#changing
			.then(() => (signal.aborted ? undefined : this.#change(ranges, signal)))
			.catch((error: unknown) => this.#failed(error, signal));
	}

	async #change(ranges: readonly ExpertRange[], signal: AbortSignal, onLoaded = () => this.#tellSoon()): Promise<void> {
		const { engine, hold, onEvent, onShort } = this.#parts;
		this.#source ??= await this.#fetchSource(signal);
		const source = this.#source;
		if (engine instanceof LateEngine) {
			await engine.resize(this.#model!.hidden, (layer, expert) => source.expert(layer, expert, signal));
		}
		const bytesTotal = ranges.reduce((sum, { layer, count }) => sum + count * (source.bytesOf(layer) ?? 0), 0);
		const all = await changeHoldings(ranges, {
			source,
			engine,
			held: this.held,
			asMuchAsFits: hold === null,
			signal,
			onProgress: (done, total) => onEvent({ event: "loading", done, total, bytesTotal }),
			onLoaded,
		});
		this.#tellNow();
		if (!all) onShort("memory is full");
	}

	async #fetchSource(signal: AbortSignal): Promise<ExpertSource> {
		const { slices, clock, random, onEvent } = this.#parts;
		const model = this.#model!;
		const client = slices!.client(this.#backbone!, model.name);
		const fetching = { client, clock, random, onRetry: this.#retrying };
		const manifest = await this.#manifest({ ...fetching, signal });
		let bytes = 0;
		const onBytes = (more: number) => {
			bytes += more;
			onEvent({ event: "fetched", bytes });
		};
		return sliceSource(manifest, model, { ...fetching, cache: slices!.cache, onBytes });
	}

	async #manifest(fetching: Parameters<typeof fetchText>[2]): Promise<Manifest> {
		const { name } = this.#model!;
		const text = await fetchText(`/v1/models/${encodeURIComponent(name)}/manifest`, manifestBytesMax, fetching);
		const { manifest, key } = openManifest(text);
		if (this.#backbone !== null && equalBytes(key, this.#backbone)) return manifest;
		throw new KvasirError("auth", "Cannot trust the manifest: another key than the backbone's signed it");
	}

	/** Every expert that was or will be read from the file is compared with the backbone's manifest, as soon as that is there. */
	#compareFile(model: ModelFacts): void {
		const { slices, clock, random, signal, log } = this.#parts;
		const source = this.#source;
		if (slices === null || source === null || !("checkAgainst" in source)) return;
		this.#model = model;
		const client = slices.client(this.#backbone!, model.name);
		this.#manifest({ client, clock, random, signal })
			.then((manifest) => (source as ReturnType<typeof fileSource>).checkAgainst(manifest))
			.catch((error: Error & { code?: string }) => {
				if (error.code === "model_mismatch") this.#failed(error, signal);
				else log.debug({ error: error.message }, "the file could not be compared with a manifest");
			});
	}

	#failed(error: unknown, signal: AbortSignal): void {
		if (signal.aborted) return;
		const { onFailed, onEvent, onShort, log } = this.#parts;
		this.#tellNow();
		if (error instanceof KvasirError && pointless.has(error.code)) {
			onFailed(error);
		} else if (error instanceof KvasirError) {
			const { code, message, hint } = error;
			onEvent({ event: "problem", code, message, hint: hint ?? null });
			onShort(code);
		} else {
			log.error({ error: (error as Error).message }, "experts could not be loaded");
			onShort("loading failed");
		}
	}

	readonly #retrying = ({ code, message }: KvasirError, inMs: number) =>
		this.#parts.onEvent({ event: "fetch_retry", code, message, inMs });

	#tellSoon(): void {
		const { clock } = this.#parts;
		const waitMs = this.#toldAtMs + tellMs - clock.monotonic();
		if (waitMs <= 0) this.#tellNow();
		else this.#cancelTelling ??= clock.after(waitMs, () => this.#tellNow());
	}

	#tellNow(): void {
		const { clock, engine, onEvent, onChanged } = this.#parts;
		this.#cancelTelling?.();
		this.#cancelTelling = null;
		this.#toldAtMs = clock.monotonic();
		onEvent({ event: "holding", experts: this.held.count, bytes: engine.bytesHeld });
		onChanged();
	}
}

function otherModel(own: string, theirs: string): KvasirError {
	return new KvasirError("model_mismatch", `Cannot serve ${own}: the backbone runs ${theirs}`, {
		hint: "Join with the same model file (--model), byte for byte, or without --model",
	});
}
