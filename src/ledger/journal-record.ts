import { crc32 } from "node:zlib";
import { MsgpackReader } from "../protocol/msgpack-reader.ts";
import { MsgpackWriter } from "../protocol/msgpack-writer.ts";
import { receiptLimits, type UnpaidReason, unpaidReasons } from "./receipt.ts";
import type { WorkerAnswer } from "./submission.ts";

/** What a session's receipts need that no dispatch says: the first record of its journal. */
export interface JournalSession {
	readonly kind: "session";
	/** 16 bytes. */
	readonly session: Uint8Array;
	/** 32-byte keys, and the worker's signature that binds its payout (64 bytes). */
	readonly worker: Uint8Array;
	readonly payout: Uint8Array;
	readonly payoutSignature: Uint8Array;
	readonly relay: string;
	/** 32 bytes. */
	readonly modelId: Uint8Array;
	readonly topK: number;
	readonly hidden: number;
}

/** One line of a session's journal. */
export type JournalRecord =
	| JournalSession
	/** An accepted answer, before it is combined. */
	| { readonly kind: "paid"; readonly id: number; readonly pairs: number; readonly answerHash: Uint8Array }
	| { readonly kind: "unpaid"; readonly id: number; readonly reason: UnpaidReason }
	/** An audit failed: what is paid from this id on is not, for this reason. */
	| { readonly kind: "condemned"; readonly reason: UnpaidReason; readonly from: number }
	/** A receipt, before it is sent to anybody. */
	| {
			readonly kind: "receipt";
			readonly number: number;
			readonly to: number;
			readonly body: Uint8Array;
			readonly signature: Uint8Array;
	  }
	/** What the worker said to it. */
	| { readonly kind: "answer"; readonly number: number; readonly answer: WorkerAnswer }
	/** The hub has it, durably. */
	| { readonly kind: "acknowledged"; readonly number: number }
	/** Stands for all acknowledged receipts of a journal that was shortened: the last one's number, hash and window end. */
	| { readonly kind: "mark"; readonly number: number; readonly hash: Uint8Array; readonly to: number };

/** Bytes of a record's head: length u32 LE, CRC-32 of the payload u32 LE. */
const recordHeadBytes = 8;
/** The largest payload: a receipt and its signature. */
const recordBytesMax = receiptLimits.bodyBytes + 1024;

const kinds = ["session", "paid", "unpaid", "condemned", "receipt", "answer", "acknowledged", "mark"] as const;

/** Head and payload of a record. */
export function encodeRecord(record: JournalRecord): Uint8Array {
	const w = new MsgpackWriter();
	const start = (fields: number) => w.array(fields + 1).uint(kinds.indexOf(record.kind));
	switch (record.kind) {
		case "session":
			start(8).bin(record.session).bin(record.worker).bin(record.payout).bin(record.payoutSignature);
			w.text(record.relay).bin(record.modelId).uint(record.topK).uint(record.hidden);
			break;
		case "paid":
			start(3).uint(record.id).uint(record.pairs).bin(record.answerHash);
			break;
		case "unpaid":
			start(2).uint(record.id).text(record.reason);
			break;
		case "condemned":
			start(2).text(record.reason).uint(record.from);
			break;
		case "receipt":
			start(4).uint(record.number).uint(record.to).bin(record.body).bin(record.signature);
			break;
		case "answer":
			if (record.answer === null) start(1).uint(record.number);
			else if ("signature" in record.answer) start(2).uint(record.number).bin(record.answer.signature);
			else start(3).uint(record.number).uint(record.answer.pairs).bin(record.answer.digest);
			break;
		case "acknowledged":
			start(1).uint(record.number);
			break;
		case "mark":
			start(3).uint(record.number).bin(record.hash).uint(record.to);
			break;
	}
	const payload = w.bytes;
	const bytes = Buffer.alloc(recordHeadBytes + payload.length);
	bytes.writeUInt32LE(payload.length, 0);
	bytes.writeUInt32LE(crc32(payload), 4);
	bytes.set(payload, recordHeadBytes);
	return bytes;
}

/** The record at `offset` and where the next begins; null when it is not whole or not right, as after a crash. */
export function decodeRecord(bytes: Buffer, offset: number): { record: JournalRecord; next: number } | null {
	if (bytes.length - offset < recordHeadBytes) return null;
	const length = bytes.readUInt32LE(offset);
	const start = offset + recordHeadBytes;
	if (length === 0 || length > recordBytesMax || length > bytes.length - start) return null;
	const payload = new Uint8Array(bytes.subarray(start, start + length));
	if (crc32(payload) !== bytes.readUInt32LE(offset + 4)) return null;
	try {
		return { record: readPayload(new MsgpackReader(payload)), next: start + length };
	} catch {
		return null;
	}
}

function readPayload(r: MsgpackReader): JournalRecord {
	return r.recordOf("record", (count): [JournalRecord, number] => {
		const kind = kinds[r.uint("kind", kinds.length - 1)]!;
		switch (kind) {
			case "session":
				return [readSession(r), 9];
			case "paid":
				return [{ kind, id: r.uint("id"), pairs: r.uint("pairs"), answerHash: r.fixed("answerHash", 32) }, 4];
			case "unpaid":
				return [{ kind, id: r.uint("id"), reason: readReason(r) }, 3];
			case "condemned":
				return [{ kind, reason: readReason(r), from: count > 2 ? r.uint("from") : 0 }, Math.min(count, 3)];
			case "receipt": {
				const [number, to] = [r.uint("number"), r.uint("to")];
				return [
					{ kind, number, to, body: r.bin("body", receiptLimits.bodyBytes), signature: r.fixed("signature", 64) },
					5,
				];
			}
			case "answer":
				return [{ kind, number: r.uint("number"), answer: readAnswer(r, count) }, count];
			case "acknowledged":
				return [{ kind, number: r.uint("number") }, 2];
			case "mark":
				return [{ kind, number: r.uint("number"), hash: r.fixed("hash", 32), to: r.uint("to") }, 4];
		}
	});
}

function readSession(r: MsgpackReader): JournalSession {
	return {
		kind: "session",
		session: r.fixed("session", 16),
		worker: r.fixed("worker", 32),
		payout: r.fixed("payout", 32),
		payoutSignature: r.fixed("payoutSignature", 64),
		relay: r.text("relay"),
		modelId: r.fixed("modelId", 32),
		topK: r.uint("topK"),
		hidden: r.uint("hidden"),
	};
}

function readReason(r: MsgpackReader): UnpaidReason {
	const reason = r.text("reason") as UnpaidReason;
	if (!unpaidReasons.includes(reason)) throw new Error("unknown reason");
	return reason;
}

function readAnswer(r: MsgpackReader, count: number): WorkerAnswer {
	if (count === 2) return null;
	if (count === 3) return { signature: r.fixed("signature", 64) };
	return { pairs: r.uint("pairs"), digest: r.fixed("digest", 32) };
}
