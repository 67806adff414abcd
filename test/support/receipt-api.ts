import http from "node:http";
import type { AddressInfo } from "node:net";
import { addressOf } from "../../src/io/base58.ts";
import { systemClock } from "../../src/io/clock.ts";
import { systemRandom } from "../../src/io/random.ts";
import { openHubStore } from "../../src/ledger/hub-store.ts";
import { parseReceipt, type Receipt, receiptHash } from "../../src/ledger/receipt.ts";
import { parseSubmission, type ReceiptVerdict } from "../../src/ledger/submission.ts";
import { createNonceCache } from "../../src/protocol/nonce-cache.ts";
import { checkRequest } from "../../src/protocol/request-authorization.ts";

/** A hub's POST /receipts over a hub's real store. */
export interface ReceiptApi {
	readonly port: number;
	readonly ledgerId: string;
	/** What the store took, in order of arrival; the same receipt again is there again. */
	readonly accepted: { readonly receipt: Receipt; readonly hash: string; readonly status: string }[];
	readonly refusals: string[];
	/** While true, it answers 503. */
	away: boolean;
	/** Bytes credited in all. */
	credited(): Promise<bigint>;
	close(): Promise<void>;
}

/** @param location of the store: a path in a temporary folder */
export async function startReceiptApi(location: string): Promise<ReceiptApi> {
	const store = await openHubStore(location, { clock: systemClock, random: systemRandom });
	const nonces = createNonceCache(systemClock);
	const state = { accepted: [] as ReceiptApi["accepted"], refusals: [] as string[], away: false };

	async function decide(request: http.IncomingMessage, body: Uint8Array): Promise<ReceiptVerdict> {
		const { method = "", url: path = "", headers } = request;
		const check = checkRequest(headers.authorization, { method, path, body }, { clock: systemClock, nonces });
		if (!check.ok || check.by !== "key") return { status: "refused", code: "not_listed", text: "unsigned" };
		const submission = parseSubmission(JSON.parse(Buffer.from(body).toString()));
		const verdict = await store.acceptReceipt(submission, { backbone: addressOf(check.key), meteredBytes: null });
		if (verdict.status === "refused") state.refusals.push(`${verdict.code} ${verdict.text}`);
		else {
			const hash = Buffer.from(receiptHash(submission.body)).toString("hex");
			state.accepted.push({ receipt: parseReceipt(submission.body), hash, status: verdict.status });
		}
		return verdict;
	}

	const server = http.createServer((request, response) => {
		const parts: Buffer[] = [];
		request.on("data", (part: Buffer) => parts.push(part));
		request.on("end", async () => {
			if (state.away) return response.writeHead(503).end();
			const verdict = await decide(request, Buffer.concat(parts));
			response.writeHead(verdict.status === "refused" ? 422 : 200, { "content-type": "application/json" });
			response.end(JSON.stringify(verdict));
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return Object.assign(state, {
		port: (server.address() as AddressInfo).port,
		ledgerId: store.ledgerId,
		credited: async () => (await store.totals(0, null)).reduce((sum, { bytes }) => sum + bytes, 0n),
		async close() {
			server.closeAllConnections();
			await new Promise<void>((resolve) => server.close(() => resolve()));
			await store.close();
		},
	});
}
