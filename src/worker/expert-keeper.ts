import { KvasirError } from "../errors.ts";
import type { ExpertEngine } from "../experts/engine.ts";
import type { Clock } from "../io/clock.ts";
import { equalBytes } from "../io/crypto.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import type { Model } from "../model/model.ts";
import { type Manifest, manifestBytesMax, openManifest, type SignedManifest } from "../protocol/manifest.ts";
import type { Assign, ExpertRange, ModelFacts } from "../protocol/messages.ts";
import { fileSource, type SliceSource, seedSource, sliceSource } from "./expert-source.ts";
import { expertsOf, HeldExperts } from "./held-experts.ts";
import { LateEngine } from "./late-engine.ts";
import { ListedSource } from "./listed-source.ts";
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

interface Wish {
	readonly signal: AbortSignal;
	/** The digest of the manifest that it goes by; null: any. */
	readonly under: Uint8Array | null;
	readonly onLoaded?: () => void;
}

/** Keeps in the engine what the operator or the backbone wants held, and knows what is ready. One change at a time; the newest wish counts. */
export class ExpertKeeper {
	readonly held = new HeldExperts();
	readonly #parts: KeeperParts;
	#model: ModelFacts | null = null;
	#backbone: Uint8Array | null = null;
	/** Is there still the link on which that was met? */
	#isLinked = () => false;
	/** A wish ended for want of a link: the next one asks anew. */
	#dropped = false;
	readonly #source: ListedSource;
	#wish = new AbortController();
	#changing: Promise<unknown> = Promise.resolve();
	#toldAtMs = Number.NEGATIVE_INFINITY;
	#cancelTelling: (() => void) | null = null;

	constructor(parts: KeeperParts) {
		this.#parts = parts;
		const { model, slices, onEvent, clock, log } = parts;
		this.#source = new ListedSource({
			own: model === null ? null : model.weightsKind === "synthetic" ? seedSource(model) : fileSource(model),
			fetch: slices === null ? null : (signal) => this.#manifest(signal),
			slicesOf: (manifest) => this.#slicesOf(manifest),
			replaced: (before, now) => this.#dropOthers(before, now),
			...{ onEvent, clock, log },
		});
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
		if (hold !== null) await this.#change(hold(model), { signal, under: null, onLoaded });
	}

	/**
	 * The main backbone's model: without a file it is adopted, and another one before is dropped. Throws `model_mismatch`, `model_missing`.
	 *
	 * @param isLinked whether the link on which it was met is still there
	 */
	meet(backbone: Uint8Array, model: ModelFacts, isLinked: () => boolean): void {
		const { model: file, slices, hold } = this.#parts;
		this.#backbone = backbone;
		this.#isLinked = isLinked;
		if (file !== null) {
			if (!equalBytes(file.modelId, model.modelId)) throw otherModel(file.name, model.name);
			const first = this.#model === null;
			this.#model = model;
			if (first) this.#compareFile();
			return;
		}
		if (slices === null)
			throw new KvasirError("model_missing", "Cannot serve: no model file and nowhere to fetch from");
		const again = this.#dropped;
		this.#dropped = false;
		// Under another name it has another manifest.
		if (this.#model?.name === model.name && equalBytes(this.#model.modelId, model.modelId)) {
			if (again && hold !== null) this.#want(hold(model));
			return;
		}
		const wanted = hold?.(model) ?? [];
		this.#model = model;
		this.#source.forget();
		const others = [...expertsOf(this.held.ranges())];
		for (const [layer, expert] of others) this.held.delete(layer, expert);
		this.#changing = this.#changing.then(async () => {
			for (const [layer, expert] of others) await this.#parts.engine.unload(layer, expert);
		});
		this.#want(wanted);
	}

	/** The main backbone's wish, where the operator has none. */
	assigned({ wanted, manifestDigest }: Assign): void {
		const model = this.#model;
		if (this.#parts.hold !== null) this.#parts.onShort("holds what its operator said");
		if (this.#parts.hold !== null || model === null) return;
		const { layers, experts } = model;
		const ranges = wanted.filter(({ layer, first, count }) => layer < layers && first + count <= experts);
		// All zero: the backbone is still making it.
		this.#want(ranges, manifestDigest.some((byte) => byte !== 0) ? manifestDigest : null);
	}

	/** @param under the digest of the manifest that the wish goes by; null: any */
	#want(ranges: readonly ExpertRange[], under: Uint8Array | null = null): void {
		this.#wish.abort();
		this.#wish = new AbortController();
		const signal = AbortSignal.any([this.#wish.signal, this.#parts.signal]);
		this.#changing = this.#changing
			.then(() => (signal.aborted ? undefined : this.#change(ranges, { signal, under })))
			.catch((error: unknown) => this.#failed(error, signal));
	}

	async #change(
		ranges: readonly ExpertRange[],
		{ signal, under, onLoaded = () => this.#tellSoon() }: Wish,
	): Promise<void> {
		const { engine, hold, onEvent, onShort } = this.#parts;
		const source = await this.#source.under(under, signal);
		if (source === null) return onShort("another manifest");
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

	/** Of what is held, what another manifest does not list as it is. */
	async #dropOthers(before: SliceSource | null, now: SliceSource): Promise<void> {
		for (const [layer, expert] of [...expertsOf(this.held.ranges())]) {
			if (before?.digestOf(layer, expert) === now.digestOf(layer, expert)) continue;
			this.held.delete(layer, expert);
			await this.#parts.engine.unload(layer, expert);
		}
	}

	#slicesOf(manifest: Manifest): SliceSource {
		const { slices, clock, random, onEvent } = this.#parts;
		const model = this.#model!;
		const client = slices!.client(this.#backbone!, model.name);
		const fetching = { client, clock, random, onRetry: this.#retrying };
		let bytes = 0;
		const onBytes = (more: number) => {
			bytes += more;
			onEvent({ event: "fetched", bytes });
		};
		return sliceSource(manifest, model, { ...fetching, cache: slices!.cache, onBytes });
	}

	/** The backbone's, as the gateway gives it now. Throws what `fetchText` throws, `malformed`, `auth`. */
	async #manifest(signal: AbortSignal): Promise<SignedManifest> {
		const { slices, model, clock, random } = this.#parts;
		const { name } = this.#model!;
		const client = slices!.client(this.#backbone!, name);
		// Who has the file only compares, and has nothing to wait for.
		const fetching = { client, clock, random, signal, ...(model === null && { onRetry: this.#retrying }) };
		const text = await fetchText(`/v1/models/${encodeURIComponent(name)}/manifest`, manifestBytesMax, fetching);
		const signed = openManifest(text);
		if (this.#backbone !== null && equalBytes(signed.key, this.#backbone)) return signed;
		throw new KvasirError("auth", "Cannot trust the manifest: another key than the backbone's signed it");
	}

	/** Every expert that was or will be read from the file is compared with the backbone's manifest, as soon as that is there. */
	#compareFile(): void {
		const { signal } = this.#parts;
		this.#source.compareFile(signal).catch((error: unknown) => this.#failed(error, signal));
	}

	#failed(error: unknown, signal: AbortSignal): void {
		if (signal.aborted) return;
		const { onFailed, onEvent, onShort, log } = this.#parts;
		this.#tellNow();
		if (error instanceof KvasirError && error.code === "model_missing" && !this.#isLinked()) {
			// Whoever answered took the backbone's place: what it offers is known once there is a link to it.
			this.#dropped = true;
			log.info({ model: this.#model?.name }, "no such model while the backbone is away: asked anew at the next link");
		} else if (error instanceof KvasirError && pointless.has(error.code)) {
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
