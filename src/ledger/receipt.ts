import { KvasirError } from "../errors.ts";
import { sha256 } from "../io/crypto.ts";
import { MsgpackReader } from "../protocol/msgpack-reader.ts";
import { MsgpackWriter } from "../protocol/msgpack-writer.ts";

/** Why asked work is not paid (ledger.md section 3). */
export const unpaidReasons = [
	"late",
	"wrong",
	"non_finite",
	"cancelled_late",
	"disputed",
	"quarantined",
	"self",
	"conflict",
] as const;
export type UnpaidReason = (typeof unpaidReasons)[number];

/**
 * A receipt for the window of dispatch ids (from, to] of one session, all settled. It travels as the bytes that
 * `encodeReceipt` made once; every hash and signature is over those bytes and nobody encodes them again.
 */
export interface Receipt {
	/** 16 bytes: the hub's ledger this receipt is for. */
	readonly ledgerId: Uint8Array;
	/** The hub's id of the spliced connection; empty for a connection that no hub carried. */
	readonly relay: string;
	/** 32-byte keys. */
	readonly backbone: Uint8Array;
	readonly worker: Uint8Array;
	readonly payout: Uint8Array;
	/** The worker key's signature over `"kvasir/1 payout" || payout`, from its hello: 64 bytes. */
	readonly payoutSignature: Uint8Array;
	/** 16 bytes. */
	readonly session: Uint8Array;
	/** 1, 2, ... in the session. */
	readonly number: number;
	/** Hash of the receipt before; 32 zero bytes for the first. */
	readonly previous: Uint8Array;
	readonly modelId: Uint8Array;
	/** Experts a row; bounds how many pairs one vector on the wire can stand for. */
	readonly topK: number;
	readonly policy: number;
	readonly from: number;
	readonly to: number;
	/** Paid pairs of the window, and their bytes: pairs x hidden x 4. */
	readonly pairs: bigint;
	readonly servedBytes: bigint;
	/** Dispatches of the window that are not paid, ids ascending. */
	readonly unpaid: readonly (readonly [id: number, reason: UnpaidReason])[];
	/** digest-chain.ts over the paid ids. */
	readonly digest: Uint8Array;
	/** Information only: numbers order receipts, not clocks. */
	readonly issuedAtMs: number;
}

/** Bounds of a receipt; a window ends early where it would exceed them. */
export const receiptLimits = { bodyBytes: 65_536, unpaid: 2048, windowIds: 1_000_000, pairs: 2 ** 40, relayBytes: 64 };

const version = 1;
const fields = 20;

/** The receipt's one encoding: a msgpack array. */
export function encodeReceipt(r: Receipt): Uint8Array {
	const w = new MsgpackWriter();
	w.array(fields).uint(version).bin(r.ledgerId).text(r.relay).bin(r.backbone).bin(r.worker).bin(r.payout);
	w.bin(r.payoutSignature).bin(r.session).uint(r.number).bin(r.previous).bin(r.modelId).uint(r.topK).uint(r.policy);
	w.uint(r.from).uint(r.to).uint(Number(r.pairs)).uint(Number(r.servedBytes)).array(r.unpaid.length);
	for (const [id, reason] of r.unpaid) w.array(2).uint(id).text(reason);
	w.bin(r.digest).uint(r.issuedAtMs);
	return new Uint8Array(w.bytes);
}

/** What names a receipt: SHA-256 of its body; the `previous` of the next. */
export function receiptHash(body: Uint8Array): Uint8Array {
	return sha256(body);
}

/** Reads a receipt's body from anyone, strictly. Throws `bad_receipt` naming the field at fault. */
export function parseReceipt(body: Uint8Array): Receipt {
	if (body.length > receiptLimits.bodyBytes) throw bad(`${body.length} bytes, more than ${receiptLimits.bodyBytes}`);
	let receipt: Receipt;
	try {
		// A copy: the fields are views, and outlive the message they came in.
		const reader = new MsgpackReader(new Uint8Array(body));
		receipt = reader.record("receipt", fields, () => readFields(reader));
		reader.end("receipt");
	} catch (cause) {
		throw bad(cause instanceof Error ? cause.message : String(cause), cause);
	}
	checkFigures(receipt);
	return receipt;
}

function readFields(r: MsgpackReader): Receipt {
	const found = r.uint("version");
	if (found !== version) throw bad(`version ${found}`);
	return {
		ledgerId: r.fixed("ledgerId", 16),
		relay: r.text("relay"),
		backbone: r.fixed("backbone", 32),
		worker: r.fixed("worker", 32),
		payout: r.fixed("payout", 32),
		payoutSignature: r.fixed("payoutSignature", 64),
		session: r.fixed("session", 16),
		number: r.uint("number"),
		previous: r.fixed("previous", 32),
		modelId: r.fixed("modelId", 32),
		topK: r.uint("topK", 4096),
		policy: r.uint("policy", 65_535),
		from: r.uint("from"),
		to: r.uint("to"),
		pairs: BigInt(r.uint("pairs", receiptLimits.pairs)),
		servedBytes: BigInt(r.uint("servedBytes")),
		unpaid: r.list("unpaid", receiptLimits.unpaid, () => readUnpaid(r)),
		digest: r.fixed("digest", 32),
		issuedAtMs: r.uint("issuedAtMs"),
	};
}

function readUnpaid(r: MsgpackReader): readonly [number, UnpaidReason] {
	return r.record("unpaid", 2, () => {
		const id = r.uint("unpaid.id");
		const reason = r.text("unpaid.reason") as UnpaidReason;
		if (!unpaidReasons.includes(reason)) throw bad("unpaid.reason is unknown");
		return [id, reason] as const;
	});
}

/** What no field can say alone. */
function checkFigures(r: Receipt): void {
	if (r.number < 1 || r.topK < 1 || r.relay.length > receiptLimits.relayBytes) throw bad("number, topK or relay");
	if (r.to <= r.from || r.to - r.from > receiptLimits.windowIds) throw bad(`window (${r.from}, ${r.to}]`);
	if ((r.number === 1) !== r.previous.every((byte) => byte === 0)) throw bad("previous does not fit the number");
	const whole = r.pairs === 0n ? r.servedBytes === 0n : r.servedBytes > 0n && r.servedBytes % (r.pairs * 4n) === 0n;
	if (!whole) throw bad(`${r.servedBytes} served bytes for ${r.pairs} pairs`);
	let last = r.from;
	for (const [id] of r.unpaid) {
		if (id <= last || id > r.to) throw bad(`unpaid id ${id} outside (${last}, ${r.to}]`);
		last = id;
	}
}

function bad(state: string, cause?: unknown): KvasirError {
	return new KvasirError("bad_receipt", `Cannot read the receipt: ${state}`, { cause });
}
