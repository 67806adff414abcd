import type { IncomingMessage, ServerResponse } from "node:http";
import type { KeyPair } from "../../io/crypto.ts";
import type { Logger } from "../../io/log.ts";
import { sliceOf } from "../../model/expert-slice.ts";
import type { FileModel } from "../../model/open-model.ts";
import { type Manifest, manifestDigest, parseManifest, signManifest } from "../../protocol/manifest.ts";
import { manifestOfFile } from "./manifest-cache.ts";
import { rangeOf } from "./slice-range.ts";

/** Slices read and on their way at once: what they take in memory is this many slices. */
const answersMax = 16;
/** When a worker may ask again for what is not ready, or while too many ask. */
const comeBackSeconds = { manifest: 2, busy: 1 } as const;

export interface SliceServiceParts {
	readonly model: FileModel;
	readonly identity: KeyPair;
	/** Where manifests are kept. */
	readonly home: string;
	readonly log: Logger;
}

/** Answers the workers' plain requests: the signed manifest, and slices by their digest, whole or in ranges. */
export interface SliceService {
	serve(request: IncomingMessage, response: ServerResponse): void;
	/** SHA-256 of the manifest's text; null until it is made. */
	readonly digest: Uint8Array | null;
	/** Bytes of the largest slice of the model's file. */
	readonly sliceBytes: number;
	/** Starts making the manifest, unless it is made or being made. */
	prepare(): void;
	close(): Promise<void>;
}

interface Refusal {
	readonly status: number;
	readonly retryAfterSeconds?: number;
}

interface Made {
	readonly digest: Uint8Array;
	readonly signed: Buffer;
	/** Where each slice is, by digest. */
	readonly places: ReadonlyMap<string, readonly [layer: number, expert: number]>;
}

/** Opens the service over a model of its own handle; one expert is read now, so that its size is known. */
export async function openSliceService(parts: SliceServiceParts): Promise<SliceService> {
	const { model } = parts;
	const sizes = await Promise.all(
		Array.from(
			{ length: model.shape.layers },
			async (_, layer) => sliceOf(await model.weights.expert(layer, 0)).length,
		),
	);
	return new OpenSlices(parts, Math.max(...sizes));
}

class OpenSlices implements SliceService {
	readonly sliceBytes: number;
	readonly #parts: SliceServiceParts;
	readonly #closing = new AbortController();
	#made: Made | null = null;
	#making: Promise<void> | null = null;
	#answering = 0;

	constructor(parts: SliceServiceParts, sliceBytes: number) {
		this.#parts = parts;
		this.sliceBytes = sliceBytes;
	}

	get digest(): Uint8Array | null {
		return this.#made?.digest ?? null;
	}

	prepare(): void {
		if (this.#made !== null || this.#making !== null) return;
		const { model, home, identity, log } = this.#parts;
		this.#making = manifestOfFile(model, home, { signal: this.#closing.signal })
			.then((text) => {
				const signed = Buffer.from(signManifest(text, identity));
				this.#made = { digest: manifestDigest(text), signed, places: placesOf(parseManifest(text)) };
				log.info({ bytes: signed.length }, "manifest ready");
			})
			.catch((error: Error) => {
				if (!this.#closing.signal.aborted) log.error({ error: error.message }, "the manifest could not be made");
			})
			.finally(() => {
				this.#making = null;
			});
	}

	serve(request: IncomingMessage, response: ServerResponse): void {
		const refusal = this.#answer(request, response);
		if (refusal !== null) refuse(response, refusal);
	}

	async close(): Promise<void> {
		this.#closing.abort();
		await this.#making;
		await this.#parts.model.weights.close();
	}

	/** Starts an answer, or says why there is none. */
	#answer({ url = "", method, headers }: IncomingMessage, response: ServerResponse): Refusal | null {
		const path = url.split("?", 1)[0]!;
		const digest = /^\/v1\/slices\/([0-9a-f]{64})$/.exec(path)?.[1];
		const name = /^\/v1\/models\/([^/]+)\/manifest$/.exec(path)?.[1];
		if (digest === undefined && name !== this.#parts.model.name) return { status: 404 };
		if (method !== "GET") return { status: 405 };
		// Only what a gateway has admitted: it and the hub checked the Authorization and say whose it was.
		if (headers["x-kvasir-key"] === undefined) return { status: 401 };
		this.prepare();
		if (this.#made === null) return { status: 503, retryAfterSeconds: comeBackSeconds.manifest };
		const { signed, places } = this.#made;
		if (digest === undefined) {
			response.writeHead(200, { "content-type": "application/x-ndjson", "content-length": signed.length }).end(signed);
			return null;
		}
		const place = places.get(digest);
		if (place === undefined) return { status: 404 };
		if (this.#answering >= answersMax) return { status: 503, retryAfterSeconds: comeBackSeconds.busy };
		this.#answering++;
		response.once("close", () => {
			this.#answering--;
		});
		this.#slice(place, digest, headers.range, response).catch((error: Error) => {
			this.#parts.log.error({ error: error.message, digest }, "a slice could not be read");
			if (response.headersSent) response.destroy();
			else refuse(response, { status: 503, retryAfterSeconds: comeBackSeconds.busy });
		});
		return null;
	}

	async #slice(
		[layer, expert]: readonly [number, number],
		digest: string,
		header: string | undefined,
		response: ServerResponse,
	): Promise<void> {
		const slice = sliceOf(await this.#parts.model.weights.expert(layer, expert));
		const range = rangeOf(header, slice.length);
		if (range === "unsatisfiable") {
			response.writeHead(416, { "content-range": `bytes */${slice.length}`, "content-length": 0 }).end();
			return;
		}
		const { first, last } = range ?? { first: 0, last: slice.length - 1 };
		response.writeHead(range === null ? 200 : 206, {
			"content-type": "application/octet-stream",
			"content-length": last - first + 1,
			"accept-ranges": "bytes",
			etag: `"${digest}"`,
			...(range === null ? {} : { "content-range": `bytes ${first}-${last}/${slice.length}` }),
		});
		response.end(slice.subarray(first, last + 1));
	}
}

function placesOf({ layers }: Manifest): Map<string, [number, number]> {
	const places = new Map<string, [number, number]>();
	for (const [layer, { slices }] of layers.entries()) {
		for (const [expert, digest] of slices.entries()) places.set(digest, [layer, expert]);
	}
	return places;
}

function refuse(response: ServerResponse, { status, retryAfterSeconds }: Refusal): void {
	if (retryAfterSeconds !== undefined) response.setHeader("retry-after", retryAfterSeconds);
	response.writeHead(status, { "content-length": 0 }).end();
}
