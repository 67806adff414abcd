import type { Clock } from "../io/clock.ts";
import { equalBytes } from "../io/crypto.ts";
import type { Logger } from "../io/log.ts";
import type { Manifest, SignedManifest } from "../protocol/manifest.ts";
import type { ExpertSource, FileSource, SliceSource } from "./expert-source.ts";
import type { WorkerEvent } from "./worker-event.ts";

export interface ListedSourceParts {
	/** The file at hand, or what a seed makes; null: experts come as slices. */
	readonly own: ExpertSource | FileSource | null;
	/** The backbone's manifest, as the gateway gives it now; null: nothing can be fetched. */
	readonly fetch: ((signal: AbortSignal) => Promise<SignedManifest>) | null;
	slicesOf(manifest: Manifest): SliceSource;
	/** Another manifest counts from now on. */
	replaced(before: SliceSource | null, now: SliceSource): Promise<void>;
	readonly onEvent: (event: WorkerEvent) => void;
	readonly clock: Clock;
	readonly log: Logger;
}

/** A file is served all the same when the manifest of an assignment does not come: whoever audits finds what is wrong with it. */
const compareMs = 20_000;

/** Where a worker's experts come from, under the manifest that the backbone's assignments go by. */
export class ListedSource {
	readonly #parts: ListedSourceParts;
	#slices: SliceSource | null = null;
	/** What the slices are fetched by, or the file was compared with. */
	#listed: SignedManifest | null = null;
	/** The manifest that was assigned and is not to be had, hex: told once. */
	#told = "";

	constructor(parts: ListedSourceParts) {
		this.#parts = parts;
	}

	/** Another model: its manifest is another one. */
	forget(): void {
		this.#slices = null;
		this.#listed = null;
	}

	/**
	 * The source for an assignment by this manifest (its digest; null: any); the one at hand being another, it is fetched again.
	 * Null, and told once: the one that is to be had is another one too. Throws what fetching throws, `model_mismatch` for a file that differs.
	 */
	async under(digest: Uint8Array | null, signal: AbortSignal): Promise<ExpertSource | null> {
		const { own, fetch } = this.#parts;
		const agrees = digest === null || (this.#listed !== null && equalBytes(this.#listed.digest, digest));
		if (own !== null) {
			const comparable = fetch !== null && "checkAgainst" in own;
			if (agrees || !comparable) return own;
			const late = new AbortController();
			const cancel = this.#parts.clock.after(compareMs, () => late.abort());
			const soon = (either: AbortSignal) => fetch(AbortSignal.any([either, late.signal]));
			return (await this.#compare(own, { fetch: soon, digest, signal }).finally(cancel)) ? own : null;
		}
		if (this.#slices !== null && agrees) return this.#slices;
		const listed = await fetch!(signal);
		if (!this.#accepts(listed, digest)) return null;
		const before = this.#slices;
		this.#slices = this.#parts.slicesOf(listed.manifest);
		this.#listed = listed;
		await this.#parts.replaced(before, this.#slices);
		return this.#slices;
	}

	/** Compares a file with the backbone's manifest, whichever that is now. Throws `model_mismatch`. */
	async compareFile(signal: AbortSignal): Promise<void> {
		const { own, fetch } = this.#parts;
		if (own !== null && fetch !== null && "checkAgainst" in own)
			await this.#compare(own, { fetch, digest: null, signal });
	}

	/** False: the manifest to compare with is another one than assigned. True also where there is none to be had. */
	async #compare(
		file: FileSource,
		{
			fetch,
			digest,
			signal,
		}: { fetch: NonNullable<ListedSourceParts["fetch"]>; digest: Uint8Array | null; signal: AbortSignal },
	): Promise<boolean> {
		const listed = await fetch(signal).catch((error: Error) => {
			signal.throwIfAborted();
			this.#parts.log.debug({ error: error.message }, "the file could not be compared with a manifest");
			return null;
		});
		if (listed === null) return true;
		if (!this.#accepts(listed, digest)) return false;
		this.#listed = listed;
		file.checkAgainst(listed.manifest);
		return true;
	}

	#accepts({ digest: had }: SignedManifest, wanted: Uint8Array | null): boolean {
		if (wanted === null || equalBytes(had, wanted)) return true;
		const hex = Buffer.from(wanted).toString("hex");
		if (this.#told === hex) return false;
		this.#told = hex;
		const [asked, given] = [hex.slice(0, 12), Buffer.from(had).toString("hex").slice(0, 12)];
		this.#parts.onEvent({
			event: "problem",
			code: "model_mismatch",
			message: `Cannot take an assignment: it goes by manifest ${asked}, and the gateway gives ${given}`,
			hint: "The backbone's operator has to look: two backbones under one key with different files, or a cache on the way",
		});
		return false;
	}
}
