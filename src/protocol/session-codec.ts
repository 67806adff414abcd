import { readRange } from "./handshake-codec.ts";
import { limits } from "./limits.ts";
import { type ExpertRange, messageKinds, type SessionMessage } from "./messages.ts";
import type { MsgpackReader } from "./msgpack-reader.ts";
import type { MsgpackWriter } from "./msgpack-writer.ts";
import { readDispatch, readPartials, writeDispatch, writePartials } from "./tensor-codec.ts";

// The messages after welcome: the fields in order, after the kind.

/** Writes a message; of dispatch and partials all but the tensor's bytes. */
export function writeSession(w: MsgpackWriter, message: Exclude<SessionMessage, { kind: "unknown" }>): void {
	const kind = messageKinds[message.kind];
	switch (message.kind) {
		case "assign":
			w.array(4).uint(kind);
			writeRanges(w, message.wanted);
			w.bin(message.manifestDigest).text(message.slicePath);
			return;
		case "holding":
			w.array(2).uint(kind);
			writeRanges(w, message.ready);
			return;
		case "dispatch":
			writeDispatch(w, message);
			return;
		case "partials":
			writePartials(w, message);
			return;
		case "refuse":
			w.array(4).uint(kind);
			if (message.id === null) w.nil();
			else w.uint(message.id);
			w.text(message.code).text(message.text);
			return;
		case "cancel":
			w.array(2).uint(kind).uint(message.id);
			return;
		case "ping":
		case "pong":
			w.array(3).uint(kind).uint(message.sequence).uint(message.senderTimeUs);
			return;
		case "receipt":
			w.array(3).uint(kind).bin(message.body).bin(message.signature);
			return;
		case "countersign":
			if ("signature" in message.answer) w.array(3).uint(kind).uint(message.number).bin(message.answer.signature);
			else w.array(4).uint(kind).uint(message.number).uint(message.answer.pairs).bin(message.answer.digest);
			return;
		case "drain":
			w.array(3).uint(kind).text(message.reason).uint(message.graceMs);
			return;
		case "bye":
			w.array(4).uint(kind).text(message.code).text(message.text).uint(message.retryAfterMs);
	}
}

/** How many fields each kind has at least, after the kind; more are ignored. */
export const sessionFields: Readonly<Record<number, number>> = {
	4: 3,
	5: 1,
	6: 10,
	7: 4,
	8: 3,
	9: 1,
	10: 2,
	11: 2,
	12: 2,
	13: 2,
	14: 2,
	15: 3,
};

/** Reads the fields of a known kind; `count` is what the array holds after the kind. */
export function readSession(r: MsgpackReader, kind: number, count: number, hidden: number): [SessionMessage, number] {
	const fields = sessionFields[kind]!;
	if (kind === messageKinds.countersign && count >= fields) return readCountersign(r);
	return [readFields(r, kind, hidden), fields];
}

function readFields(r: MsgpackReader, kind: number, hidden: number): SessionMessage {
	switch (kind) {
		case messageKinds.assign:
			return {
				kind: "assign",
				wanted: readRanges(r, "wanted"),
				manifestDigest: r.fixed("manifestDigest", 32),
				slicePath: r.text("slicePath"),
			};
		case messageKinds.holding:
			return { kind: "holding", ready: readRanges(r, "ready") };
		case messageKinds.dispatch:
			return readDispatch(r, hidden);
		case messageKinds.partials:
			return readPartials(r, hidden);
		case messageKinds.refuse:
			return { kind: "refuse", id: r.nil() ? null : r.uint("id"), code: r.text("code"), text: r.text("text") };
		case messageKinds.cancel:
			return { kind: "cancel", id: r.uint("id") };
		case messageKinds.receipt:
			return {
				kind: "receipt",
				body: r.bin("body", limits.receiptBytes),
				signature: r.fixed("signature", 64),
			};
		case messageKinds.drain:
			return { kind: "drain", reason: r.text("reason"), graceMs: r.uint("graceMs") };
		case messageKinds.bye:
			return { kind: "bye", code: r.text("code"), text: r.text("text"), retryAfterMs: r.uint("retryAfterMs") };
		default:
			return {
				kind: kind === messageKinds.ping ? "ping" : "pong",
				sequence: r.uint("sequence"),
				senderTimeUs: r.uint("senderTimeUs"),
			};
	}
}

/** A signature, or the worker's own pairs and digest. */
function readCountersign(r: MsgpackReader): [SessionMessage, number] {
	const number = r.uint("number");
	if (r.atBin) return [{ kind: "countersign", number, answer: { signature: r.fixed("signature", 64) } }, 2];
	const answer = { pairs: r.uint("pairs"), digest: r.fixed("digest", 32) };
	return [{ kind: "countersign", number, answer }, 3];
}

function writeRanges(w: MsgpackWriter, ranges: readonly ExpertRange[]): void {
	w.array(ranges.length);
	for (const { layer, first, count } of ranges) w.array(3).uint(layer).uint(first).uint(count);
}

function readRanges(r: MsgpackReader, field: string): ExpertRange[] {
	return r.list(field, limits.ranges, () => r.record(field, 3, () => readRange(r)));
}
