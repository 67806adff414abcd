import { KvasirError } from "../../errors.ts";
import { addressOf } from "../../io/base58.ts";
import { failpoint } from "../../io/failpoint.ts";
import { pageJson } from "../../ledger/entry.ts";
import type { HubLedger } from "../../ledger/hub-ledger.ts";
import { parseReceipt } from "../../ledger/receipt.ts";
import { parseSubmission, type ReceiptSubmission } from "../../ledger/submission.ts";
import { readCount, readHash, readJson } from "../http/read-request.ts";
import type { Route } from "../http/route.ts";
import type { RelayMeter, RelayStore } from "./relay-meter.ts";

const entriesMax = 1_000;
const waitMsMax = 30_000;

/** The ledger's routes of the hub's API: receipts of listed backbones in, numbered entries out to the gateway. */
export function hubLedgerRoutes(ledger: HubLedger): (meter: RelayMeter) => Route[] {
	return (meter) => [
		{
			method: "POST",
			path: "/receipts",
			caller: "backbone",
			async handle({ body, key }) {
				const submission = parseSubmission(readJson(body));
				const backbone = addressOf(key!);
				const origin = { backbone, meteredBytes: meteredBytes(submission, backbone, meter) };
				failpoint("hub.receipt.before");
				const verdict = await ledger.acceptReceipt(submission, origin);
				failpoint("hub.receipt.after");
				return { status: verdict.status === "refused" ? 422 : 200, json: verdict };
			},
		},
		{
			method: "GET",
			path: "/ledger/entries",
			caller: "gateway",
			async handle({ query, signal }) {
				const after = readCount(query, "after", 0, Number.MAX_SAFE_INTEGER);
				const hash = readHash(query, "hash");
				const limit = readCount(query, "limit", entriesMax, entriesMax);
				const waitMs = readCount(query, "wait", 0, waitMsMax);
				await ledger.waitForEntries(after, waitMs, signal);
				failpoint("hub.page.before");
				const page = await ledger.entriesAfter(after, hash, limit);
				failpoint("hub.page.after");
				return "diverged" in page ? { status: 409, json: page } : { status: 200, json: pageJson(page) };
			},
		},
		{
			method: "GET",
			path: "/ledger/totals",
			caller: "gateway",
			async handle({ query }) {
				const after = readCount(query, "after", 0, Number.MAX_SAFE_INTEGER);
				const upTo = query.has("upTo") ? readCount(query, "upTo", 0, Number.MAX_SAFE_INTEGER) : null;
				const totals = await ledger.totals(after, upTo);
				const json = totals.map(({ wallet, rate, bytes }) => ({ wallet, rate: String(rate), bytes: String(bytes) }));
				return { status: 200, json: { ledgerId: ledger.ledgerId, totals: json } };
			},
		},
	];
}

/** Where the hub keeps its relay counters. */
export function relayStore(ledger: Pick<HubLedger, "recordRelays">): RelayStore {
	return {
		saveRelays: (counts) =>
			ledger.recordRelays(
				counts.map(({ relay, worker, bytesFromWorker, bytesToWorker, closed }) => ({
					relay,
					worker,
					closed,
					bytesFromWorker: BigInt(bytesFromWorker),
					bytesToWorker: BigInt(bytesToWorker),
				})),
			),
	};
}

/** What the hub's own meter says now of a receipt's relay; a live relay of somebody else carried nothing for it. */
function meteredBytes({ body }: ReceiptSubmission, backbone: string, meter: RelayMeter): bigint | null {
	let receipt: ReturnType<typeof parseReceipt>;
	try {
		receipt = parseReceipt(body);
	} catch (error) {
		// The ledger refuses it, with the reason.
		if (error instanceof KvasirError) return null;
		throw error;
	}
	const relay = meter.find(receipt.relay);
	if (relay === null) return null;
	const own = relay.worker === addressOf(receipt.worker) && (relay.backbone === "" || relay.backbone === backbone);
	return own ? BigInt(relay.bytesFromWorker) : 0n;
}
