import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent } from "undici";
import { onTestFinished } from "vitest";
import { systemClock } from "../../src/io/clock.ts";
import { keyPairFromSeed } from "../../src/io/crypto.ts";
import { systemRandom } from "../../src/io/random.ts";
import { createSliceClient, type SliceClient } from "../../src/worker/slice-client.ts";

/** A gateway as a worker that fetches sees it, as bad as the test makes it. */
export interface SliceServer {
	readonly client: SliceClient;
	/** The Range header of each request, in order; null: none. */
	readonly ranges: (string | null)[];
	readonly requests: IncomingMessage[];
}

/** @param answer gets the number of the request, from 0, and the first byte asked for */
export async function startSliceServer(
	answer: (response: ServerResponse, facts: { request: number; from: number }) => void,
	{ stallMs = 5_000 } = {},
): Promise<SliceServer> {
	const ranges: (string | null)[] = [];
	const requests: IncomingMessage[] = [];
	const server = http.createServer((request, response) => {
		requests.push(request);
		ranges.push(request.headers.range ?? null);
		response.on("error", () => {});
		answer(response, {
			request: requests.length - 1,
			from: Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0),
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const dispatcher = new Agent();
	onTestFinished(async () => {
		await dispatcher.destroy();
		server.closeAllConnections();
		server.close();
	});
	const client = createSliceClient({
		url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
		identity: keyPairFromSeed(new Uint8Array(32).fill(3)),
		backbone: keyPairFromSeed(new Uint8Array(32).fill(4)).publicKey,
		model: "tiny",
		dispatcher,
		clock: systemClock,
		random: systemRandom,
		stallMs,
	});
	return { client, ranges, requests };
}

/** What a good server answers. */
export function sendFrom(response: ServerResponse, slice: Uint8Array, from: number): void {
	if (from > 0) {
		response.writeHead(206, {
			"content-range": `bytes ${from}-${slice.length - 1}/${slice.length}`,
			"content-length": slice.length - from,
		});
	} else response.writeHead(200, { "content-length": slice.length });
	response.end(slice.subarray(from));
}

/** Sends some bytes and then breaks the connection; undici drops what it has not handed over by then, hence the moment between. */
export function cutAfter(response: ServerResponse, bytes: Uint8Array): void {
	response.write(bytes, () => setTimeout(() => response.destroy(), 30));
}
