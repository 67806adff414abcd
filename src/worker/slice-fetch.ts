import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import type { Random } from "../io/random.ts";
import type { SliceCache, UnfinishedSlice } from "./slice-cache.ts";
import type { SliceClient } from "./slice-client.ts";

/** Waits between tries: U(0, 0.5 s x 2^failures), at most this. */
const retryMsFirst = 500;
const retryMsMax = 30_000;
/** A slice that came whole and wrong this often will not come right. */
const wrongMax = 3;
/** Trying again does not help against these. */
const hopeless = new Set([
	"auth",
	"not_admitted",
	"version",
	"clock_skew",
	"disk_full",
	"bad_weights",
	"bounds",
	"tls",
]);

/** What to fetch: where, how long it is, and what it must hash to. */
export interface SliceWanted {
	readonly digest: string;
	readonly bytes: number;
	/** For errors: "expert 3 of layer 7". */
	readonly what: string;
}

export interface FetchParts {
	readonly client: SliceClient;
	readonly cache: SliceCache;
	readonly clock: Clock;
	readonly random: Random;
	readonly signal: AbortSignal;
	/** Bytes that just came. */
	readonly onBytes?: (bytes: number) => void;
	/** Why it is tried again, and when. */
	readonly onRetry?: (error: KvasirError, inMs: number) => void;
}

/**
 * A slice from the cache or from the gateway, checked against its digest; resumes where an earlier try ended.
 * Tries until it is there: throws only what trying again does not help against (`auth`, `disk_full`, ...), `bad_weights` where what
 * comes is wrong again and again, and the signal's reason.
 */
export async function fetchSlice(wanted: SliceWanted, parts: FetchParts): Promise<Uint8Array<ArrayBuffer>> {
	const cached = await parts.cache.read(wanted.digest);
	if (cached !== null) return cached;
	let wrong = 0;
	return retrying(parts, async (progressed) => {
		const slice = await parts.cache.resume(wanted.digest, wanted.bytes);
		const onBytes = (bytes: number) => {
			progressed();
			parts.onBytes?.(bytes);
		};
		try {
			await download(wanted, slice, { ...parts, onBytes });
			const checked = await slice.finish();
			if (checked !== null) return checked;
		} finally {
			await slice.close();
		}
		if (++wrong < wrongMax)
			throw new KvasirError("network", `Cannot use ${wanted.what}: other bytes came than the manifest lists`);
		throw new KvasirError(
			"bad_weights",
			`Cannot fetch ${wanted.what}: ${wrongMax} times other bytes came than the manifest lists`,
			{
				hint: "The backbone's file may have changed: its operator has to look",
				facts: { digest: wanted.digest },
			},
		);
	});
}

/** The text of a document of at most `bytesMax`, such as a manifest. Tries and throws as `fetchSlice`; `bounds` for a longer one. */
export function fetchText(path: string, bytesMax: number, parts: Omit<FetchParts, "cache">): Promise<string> {
	return retrying(parts, async () => {
		const { body } = await parts.client.get(path, { signal: parts.signal });
		const chunks: Uint8Array[] = [];
		let bytes = 0;
		for await (const chunk of body) {
			bytes += chunk.length;
			if (bytes > bytesMax) throw new KvasirError("bounds", `Cannot read ${path}: more than ${bytesMax} bytes`);
			chunks.push(chunk);
		}
		return Buffer.concat(chunks).toString("utf8");
	});
}

async function download(
	wanted: SliceWanted,
	slice: UnfinishedSlice,
	{ client, signal, onBytes }: FetchParts,
): Promise<void> {
	const { digest, bytes } = wanted;
	if (slice.bytes > bytes) await slice.restart();
	if (slice.bytes === bytes) return;
	const answer = await client.get(`/v1/slices/${digest}`, { from: slice.bytes, signal }).catch((error: unknown) => {
		throw error instanceof KvasirError && error.facts.status === 404 ? notThereNow(wanted, error) : error;
	});
	const { status, start, body } = answer;
	// A server that knows no ranges sends all of it again; one that answers another range than asked is not trusted with a second.
	if (status !== 206 || start !== slice.bytes) await slice.restart();
	if (status === 416 || (status === 206 && start !== slice.bytes)) {
		for await (const _ of body);
		throw new KvasirError("network", "Cannot resume a slice: the gateway has no such range");
	}
	for await (const chunk of body) {
		if (slice.bytes + chunk.length > bytes) {
			await slice.restart();
			throw new KvasirError("network", `Cannot use a slice: more than ${bytes} bytes came`);
		}
		await slice.append(chunk);
		onBytes?.(chunk.length);
	}
	if (slice.bytes < bytes)
		throw new KvasirError(
			"closed",
			`Cannot fetch a slice: the connection ended after ${slice.bytes} of ${bytes} bytes`,
		);
}

async function retrying<T>(
	{ clock, random, signal, onRetry }: Omit<FetchParts, "cache">,
	attempt: (progressed: () => void) => Promise<T>,
): Promise<T> {
	let failures = 0;
	for (; ; failures++) {
		signal.throwIfAborted();
		try {
			return await attempt(() => {
				failures = 0;
			});
		} catch (error) {
			signal.throwIfAborted();
			if (!(error instanceof KvasirError) || hopeless.has(error.code)) throw error;
			if (error.facts.status === 404) throw notThere(error);
			const ceilingMs = Math.min(retryMsMax, retryMsFirst * 2 ** Math.min(failures, 16));
			const inMs = Math.max(Number(error.facts.retryAfterMs ?? 0), random.uniform() * ceilingMs);
			onRetry?.(error, inMs);
			await clock.sleep(inMs, signal);
		}
	}
}

/** The manifest listed it: the backbone began again with another file since. Its next assignment goes by another manifest. */
function notThereNow({ what, digest }: SliceWanted, cause: KvasirError): KvasirError {
	return new KvasirError("bad_weights", `Cannot fetch ${what}: the backbone offers it no more`, {
		cause,
		hint: "Its model changed; what it assigns next is fetched by its new manifest",
		facts: { digest },
	});
}

function notThere(cause: KvasirError): KvasirError {
	return new KvasirError("model_missing", "Cannot fetch experts: the backbone offers none of this model", {
		cause,
		hint: "Join with the model's file: --model PATH",
	});
}
