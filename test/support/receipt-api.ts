import http from "node:http";
import type { AddressInfo } from "node:net";
import { addressOf } from "../../src/io/base58.ts";
import { systemClock } from "../../src/io/clock.ts";
import { type Candidate, createExamine } from "../../src/ledger/hub-examine.ts";
import { parseSubmission, type ReceiptVerdict } from "../../src/ledger/submission.ts";
import { knownPolicies } from "../../src/ledger/units.ts";
import { createNonceCache } from "../../src/protocol/nonce-cache.ts";
import { checkRequest } from "../../src/protocol/request-authorization.ts";

/** A hub's POST /receipts that checks everything a hub checks without a database. */
export interface ReceiptApi {
	readonly port: number;
	/** Accepted, in order of arrival; the same receipt again is there again. */
	readonly accepted: Candidate[];
	readonly refusals: string[];
	/** While true, it answers 503. */
	away: boolean;
	close(): Promise<void>;
}

export async function startReceiptApi(ledgerId: string): Promise<ReceiptApi> {
	const nonces = createNonceCache(systemClock);
	const examine = createExamine(ledgerId, knownPolicies);
	const state = { accepted: [] as Candidate[], refusals: [] as string[], away: false };
	async function decide(
		method: string,
		path: string,
		authorization: string | undefined,
		body: Uint8Array,
	): Promise<ReceiptVerdict> {
		const check = checkRequest(authorization, { method, path, body }, { clock: systemClock, nonces });
		if (!check.ok || check.by !== "key") return { status: "refused", code: "not_listed", text: "unsigned" };
		const submission = parseSubmission(JSON.parse(Buffer.from(body).toString()));
		const candidate = await examine(submission, { backbone: addressOf(check.key), meteredBytes: null });
		if ("code" in candidate) return candidate;
		state.accepted.push(candidate);
		return { status: candidate.status, entry: state.accepted.length };
	}
	const server = http.createServer((request, response) => {
		const parts: Buffer[] = [];
		request.on("data", (part: Buffer) => parts.push(part));
		request.on("end", async () => {
			if (state.away) return response.writeHead(503).end();
			const verdict = await decide(request.method!, request.url!, request.headers.authorization, Buffer.concat(parts));
			if (verdict.status === "refused") state.refusals.push(verdict.text);
			response.writeHead(verdict.status === "refused" ? 422 : 200, { "content-type": "application/json" });
			response.end(JSON.stringify(verdict));
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return Object.assign(state, {
		port: (server.address() as AddressInfo).port,
		close: () =>
			new Promise<void>((resolve) => {
				server.close(() => resolve());
				server.closeAllConnections();
			}),
	});
}
