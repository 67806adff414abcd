import type { Transaction } from "kysely";
import type { ReceiptStatus } from "./entry.ts";
import { type Candidate, refusal } from "./hub-examine.ts";
import { type ReceiptFacts, ReceiptGroup } from "./hub-group.ts";
import type { HubTables, RelayRow } from "./hub-schema.ts";
import type { ReceiptVerdict } from "./submission.ts";

/** Posts `candidates` one after another in the caller's transaction; verdicts in the same order, and the ledger's last entry. */
export async function postReceipts(
	trx: Transaction<HubTables>,
	candidates: readonly Candidate[],
	atMs: number,
): Promise<{ verdicts: ReceiptVerdict[]; head: number }> {
	const group = await ReceiptGroup.read(trx, candidates, atMs);
	const verdicts: ReceiptVerdict[] = [];
	for (const candidate of candidates) verdicts.push(await decide(group, candidate));
	await group.write();
	return { verdicts, head: group.head };
}

async function decide(group: ReceiptGroup, candidate: Candidate): Promise<ReceiptVerdict> {
	const stored = group.receipt(candidate.id);
	if (stored !== undefined) {
		return stored.hash === candidate.hash ? again(group, candidate, stored) : keepConflict(group, candidate);
	}
	const broken = await brokenChain(group, candidate);
	if (broken !== null) return refusal("broken_chain", broken);
	const relay = group.relay(candidate.receipt.relay);
	// A relay that is neither live nor ended was cut off by the death of its hub: what is stored of it is too little.
	const metered = candidate.metered !== null || relay?.closed === 1n;
	const implausible = foreignRelay(candidate, relay) ?? (metered ? implausibility(candidate, relay) : null);
	if (implausible !== null) return refusal("implausible", implausible);
	return accept(group, candidate, relay, candidate.reason ?? (metered ? null : "unmetered"));
}

function accept(
	group: ReceiptGroup,
	candidate: Candidate,
	relay: RelayRow | undefined,
	reason: string | null,
): ReceiptVerdict {
	const { id, session, hash, previous, status, paidBytes, receipt, submission } = candidate;
	const { answer, body, signature } = submission;
	const entry = group.append(candidate, { kind: "receipt", status, paidBytes, reason });
	const row = {
		id,
		session,
		number: BigInt(receipt.number),
		hash,
		previous,
		window_from: BigInt(receipt.from),
		window_to: BigInt(receipt.to),
		status,
		entry,
		body: Buffer.from(body),
		signature: Buffer.from(signature),
		countersign: answer !== null && "signature" in answer ? Buffer.from(answer.signature) : null,
		disputed:
			answer !== null && "pairs" in answer
				? JSON.stringify({ pairs: answer.pairs, digest: Buffer.from(answer.digest).toString("hex") })
				: null,
	};
	group.addReceipt(row, relay, receipt.servedBytes);
	return { status, entry: Number(entry) };
}

/** The same receipt again: the same answer; a countersignature that came late upgrades it. */
async function again(group: ReceiptGroup, candidate: Candidate, stored: ReceiptFacts): Promise<ReceiptVerdict> {
	const { answer } = candidate.submission;
	const entry = Number(stored.entry);
	if (stored.status !== "unconfirmed" || answer === null || !("signature" in answer)) {
		return { status: stored.status as ReceiptStatus, entry };
	}
	group.append(candidate, { kind: "confirm", status: "confirmed", paidBytes: 0n, reason: null });
	await group.confirm(stored, answer.signature);
	return { status: "confirmed", entry };
}

/** Another receipt has this number: evidence that its backbone signed both. */
function keepConflict(group: ReceiptGroup, candidate: Candidate): ReceiptVerdict {
	const { hash, id, submission } = candidate;
	const known = group.conflict(hash);
	if (known !== undefined) return { status: "conflict", entry: Number(known) };
	const entry = group.append(candidate, { kind: "conflict", status: "conflict", paidBytes: 0n, reason: "conflict" });
	const { body, signature } = submission;
	group.addConflict({ hash, receipt: id, body: Buffer.from(body), signature: Buffer.from(signature), entry });
	return { status: "conflict", entry: Number(entry) };
}

/** Null when the receipt fits between its neighbours, whatever the order in which they arrive. */
async function brokenChain(group: ReceiptGroup, candidate: Candidate): Promise<string | null> {
	const { receipt, hash, previous } = candidate;
	const { lower, higher } = await group.neighbours(candidate);
	if (lower !== null) {
		if (BigInt(receipt.from) < lower.window_to) return `window starts at ${receipt.from}, below ${lower.window_to}`;
		const next = lower.number === BigInt(receipt.number - 1);
		if (next && lower.hash !== previous) return "previous is another receipt";
	}
	if (higher !== null) {
		if (BigInt(receipt.to) > higher.window_from) return `window ends at ${receipt.to}, above ${higher.window_from}`;
		const next = higher.number === BigInt(receipt.number + 1);
		if (next && higher.previous !== hash) return "the next receipt follows another";
	}
	return null;
}

function foreignRelay({ receipt, worker }: Candidate, relay: RelayRow | undefined): string | null {
	return relay === undefined || relay.worker === worker ? null : `relay ${receipt.relay} carried ${relay.worker}`;
}

/** Served bytes can be at most 2 x topK x what came from the worker: mode 1 sums topK vectors into one, f16 halves it. */
function implausibility(candidate: Candidate, relay: RelayRow | undefined): string | null {
	const { receipt } = candidate;
	const stored = relay?.bytes_from_worker ?? 0n;
	const metered = candidate.metered !== null && candidate.metered > stored ? candidate.metered : stored;
	const served = (relay?.receipted_bytes ?? 0n) + receipt.servedBytes;
	const most = 2n * BigInt(receipt.topK) * metered;
	return served <= most ? null : `${served} served bytes, at most ${most} with ${metered} bytes from the worker`;
}
