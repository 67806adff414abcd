import { type Dispatcher, request } from "undici";
import { KvasirError } from "../errors.ts";
import { addressOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import { signAuthorization } from "../protocol/authorization.ts";
import { connectionError, upgradeError } from "./dial-error.ts";
import { readRefusal } from "./read-refusal.ts";

/** No byte for this long: the connection is given up and the rest asked for anew. */
const stallMsDefault = 20_000;

/**
 * Bytes of an answer that may wait to be read. More than a slice or a manifest: undici 7.30 ends the process with a failed
 * assertion when the other side closes the connection while an answer is paused.
 */
const unreadBytesMax = 64 * 2 ** 20;

/** One answer on its way. */
export interface Fetched {
	readonly status: number;
	/** First byte of a 206's range; 0 otherwise. */
	readonly start: number;
	/** Throws `timeout` when nothing comes for a while, and the connection's error. */
	readonly body: AsyncIterable<Uint8Array>;
}

/** Signed GETs at a gateway for manifests and slices. One request, one answer; when to try again is not decided here. */
export interface SliceClient {
	/** Throws `dns`, `refused`, `timeout`, `tls`, `proxy`, `network`, `auth`, `not_admitted`, with `facts.retryAfterMs` where the gateway named a time. */
	get(path: string, options: { from?: number; signal: AbortSignal }): Promise<Fetched>;
}

export interface SliceClientParts {
	/** `wss://host[:port]`, as joined. */
	readonly url: string;
	readonly identity: KeyPair;
	/** 32 bytes: whose slices. */
	readonly backbone: Uint8Array;
	readonly model: string;
	readonly dispatcher: Dispatcher;
	readonly clock: Clock;
	readonly random: Random;
	readonly stallMs?: number;
}

export function createSliceClient(parts: SliceClientParts): SliceClient {
	const origin = new URL(parts.url.replace(/^ws/, "http"));
	let offsetSeconds = 0;

	async function once(path: string, from: number, signal: AbortSignal): Promise<Fetched> {
		const { identity, backbone, model, dispatcher, clock, random, stallMs = stallMsDefault } = parts;
		const url = new URL(path, origin);
		// A manifest's path names its model already.
		if (!path.startsWith("/v1/models/")) url.searchParams.set("model", model);
		url.searchParams.set("backbone", addressOf(backbone));
		const authorization = signAuthorization(
			{ label: "kvasir/1 relay", host: origin.host, model },
			{ identity, clock, random, offsetSeconds },
		);
		const headers = { authorization, ...(from > 0 ? { range: `bytes=${from}-` } : {}) };
		const stall = stallTimer(clock, stallMs);
		const either = AbortSignal.any([signal, stall.signal]);
		try {
			const timeouts = { headersTimeout: 0, bodyTimeout: 0 };
			const options = { dispatcher, headers, signal: either, highWaterMark: unreadBytesMax, ...timeouts };
			const response = await request(url, options);
			stall.reset();
			const { statusCode, body } = response;
			if (statusCode !== 200 && statusCode !== 206 && statusCode !== 416) {
				stall.stop();
				const refused = { status: statusCode, headers: response.headers, body: await readRefusal(body, clock) };
				throw upgradeError(origin.host, refused, clock.now() / 1000, "fetch from");
			}
			const range = /^bytes (\d{1,15})-/.exec(String(response.headers["content-range"] ?? ""));
			return { status: statusCode, start: statusCode === 206 ? Number(range?.[1] ?? Number.NaN) : 0, body: read(body) };
		} catch (error) {
			stall.stop();
			throw named(error);
		}

		async function* read(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
			try {
				for await (const chunk of body) {
					stall.reset();
					yield chunk;
				}
			} catch (error) {
				throw named(error);
			} finally {
				stall.stop();
			}
		}

		function named(error: unknown): unknown {
			if (signal.aborted) return signal.reason;
			if (stall.signal.aborted) {
				return new KvasirError("timeout", `Cannot fetch from ${origin.host}: nothing came for ${stallMs / 1000} s`);
			}
			return error instanceof KvasirError ? error : connectionError(origin.host, errorOf(error));
		}
	}

	return {
		async get(path, { from = 0, signal }) {
			try {
				return await once(path, from, signal);
			} catch (error) {
				if (!(error instanceof KvasirError) || error.code !== "clock_skew") throw error;
				offsetSeconds = error.facts.offsetSeconds as number;
				return once(path, from, signal);
			}
		},
	};
}

/** undici wraps what the socket said. */
function errorOf(error: unknown): Error & { code?: string } {
	const outer = error as Error & { code?: string };
	const inner = outer.cause as (Error & { code?: string }) | undefined;
	return inner?.code === undefined ? outer : inner;
}

function stallTimer(clock: Clock, stallMs: number) {
	const controller = new AbortController();
	let cancel = clock.after(stallMs, () => controller.abort());
	return {
		signal: controller.signal,
		reset() {
			cancel();
			cancel = clock.after(stallMs, () => controller.abort());
		},
		stop: () => cancel(),
	};
}
