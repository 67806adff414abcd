import { Agent, request } from "undici";
import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import type { KeyPair } from "../../io/crypto.ts";
import type { Random } from "../../io/random.ts";
import { parseVerdict, type ReceiptSubmission, type ReceiptVerdict, submissionJson } from "../../ledger/submission.ts";
import { signRequest } from "../../protocol/request-authorization.ts";
import { serverTime } from "../../protocol/server-time.ts";

/** Where a hub's API is, and which ledger it keeps: told to each connection parked there. */
export interface HubFacts {
	readonly host: string;
	readonly apiPort: number;
	/** 16 bytes. */
	readonly ledgerId: Uint8Array;
}

/** The hub's API as the backbone uses it. */
export interface HubApi {
	/** Throws `network` when the hub cannot be reached or does not answer as a hub; a refusal is a value. */
	postReceipt(hub: HubFacts, submission: ReceiptSubmission): Promise<ReceiptVerdict>;
	close(): Promise<void>;
}

const answerMs = 10_000;
const answerBytesMax = 16 * 1024;

/** Signs each request with the backbone's key. */
export function createHubApi({ identity, clock, random }: { identity: KeyPair; clock: Clock; random: Random }): HubApi {
	const dispatcher = new Agent({
		connections: 2,
		headersTimeout: answerMs,
		bodyTimeout: answerMs,
		connectTimeout: answerMs,
		maxResponseSize: answerBytesMax,
	});
	const path = "/receipts";
	const time = serverTime(clock);
	const post = (url: URL, body: Uint8Array) =>
		request(url, {
			dispatcher,
			method: "POST",
			headers: {
				"content-type": "application/json",
				authorization: signRequest({ method: "POST", path, body }, { identity }, { clock: time.clock, random }),
			},
			body,
		});
	return {
		async postReceipt({ host, apiPort }, submission) {
			const body = Buffer.from(JSON.stringify(submissionJson(submission)));
			const url = `http://${bracketed(host)}:${apiPort}`;
			try {
				let response = await post(new URL(path, url), body);
				if (response.statusCode === 401 && time.learn(response.headers)) {
					await response.body.dump();
					response = await post(new URL(path, url), body);
				}
				const text = await response.body.text();
				if (response.statusCode !== 200 && response.statusCode !== 422) {
					throw new KvasirError("network", `Cannot post a receipt: the hub answered ${response.statusCode}`);
				}
				return parseVerdict(JSON.parse(text));
			} catch (cause) {
				if (cause instanceof KvasirError) throw cause;
				throw new KvasirError("network", `Cannot post a receipt to ${host}:${apiPort}: ${(cause as Error).message}`, {
					cause,
				});
			}
		},
		close: () => dispatcher.destroy(),
	};
}

function bracketed(host: string): string {
	return host.includes(":") ? `[${host}]` : host;
}
