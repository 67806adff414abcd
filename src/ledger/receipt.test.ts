import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../test/support/long.ts";
import { receiptChain, testSession } from "../../test/support/receipts.ts";
import { KvasirError } from "../errors.ts";
import { emptyDigest, extendDigest } from "./digest-chain.ts";
import { encodeReceipt, parseReceipt, type Receipt, receiptLimits, unpaidReasons } from "./receipt.ts";
import { countersignReceipt, signReceipt, verifyCountersign, verifyReceipt } from "./receipt-signatures.ts";

const session = testSession("0123456789abcdef0123456789abcdef");
const [first] = receiptChain(session, [104]) as [ReturnType<typeof receiptChain>[number]];
const altered = (changes: Partial<Receipt>) => encodeReceipt({ ...first.receipt, ...changes });

describe("parseReceipt()", () => {
	it("reads what encodeReceipt() wrote, with numbers above 32 bits and every reason", () => {
		const receipt: Receipt = {
			...first.receipt,
			number: 2,
			previous: first.hash,
			from: 2 ** 40,
			to: 2 ** 40 + 20,
			pairs: 2n ** 33n,
			servedBytes: 2n ** 33n * 12288n,
			unpaid: unpaidReasons.map((reason, i) => [2 ** 40 + 1 + i, reason] as const),
		};
		expect(parseReceipt(encodeReceipt(receipt))).toEqual(receipt);
	});

	it.each<[string, Partial<Receipt>]>([
		["an empty window", { from: 10, to: 10 }],
		["a window longer than the bound", { to: receiptLimits.windowIds + 1 }],
		["a first receipt that follows another", { previous: first.hash }],
		["a later receipt that follows none", { number: 2 }],
		["number 0", { number: 0 }],
		["served bytes that are no multiple of pairs x 4", { servedBytes: first.receipt.servedBytes + 1n }],
		["served bytes for no pairs", { pairs: 0n }],
		["pairs for no bytes", { servedBytes: 0n }],
		[
			"unpaid ids that repeat",
			{
				unpaid: [
					[3, "late"],
					[3, "late"],
				],
			},
		],
		["unpaid ids outside the window", { unpaid: [[11, "late"]] }],
		["an unknown reason", { unpaid: [[3, "tired" as "late"]] }],
		["a short key", { worker: new Uint8Array(31) }],
		["a long relay", { relay: "r".repeat(receiptLimits.relayBytes + 1) }],
	])("refuses %s", (_, changes) => {
		expect(() => parseReceipt(altered(changes))).toThrow(expect.objectContaining({ code: "bad_receipt" }));
	});

	it("refuses a body with bytes after its end, and one above the bound", () => {
		expect(() => parseReceipt(Buffer.concat([first.body, Buffer.of(0)]))).toThrow("after its end");
		expect(() => parseReceipt(new Uint8Array(receiptLimits.bodyBytes + 1))).toThrow("more than");
	});

	it("throws nothing but bad_receipt, whatever the bytes", () => {
		const mutated = fc.tuple(fc.nat(first.body.length - 1), fc.nat(255)).map(([at, byte]) => {
			const bytes = Uint8Array.from(first.body);
			bytes[at] = byte;
			return bytes;
		});
		fc.assert(
			fc.property(fc.oneof(fc.uint8Array({ maxLength: 600 }), mutated), (bytes) => {
				try {
					parseReceipt(bytes);
				} catch (error) {
					expect(error).toBeInstanceOf(KvasirError);
					expect((error as KvasirError).code).toBe("bad_receipt");
				}
			}),
			{ numRuns: runs(2_000, 100_000) },
		);
	});
});

describe("receipt signatures", () => {
	it("are bound to their key, their label and every bit of the body", () => {
		const { receipt, body } = first;
		const backbone = signReceipt(session.backbone, body);
		const worker = countersignReceipt(session.worker, body);
		expect(verifyReceipt(receipt, body, backbone)).toBe(true);
		expect(verifyCountersign(receipt, body, worker)).toBe(true);
		expect(verifyReceipt(receipt, body, worker)).toBe(false);
		expect(verifyCountersign({ ...receipt, worker: receipt.backbone }, body, backbone)).toBe(false);
		const flipped = Uint8Array.from(body);
		flipped[200]! ^= 1;
		expect(verifyReceipt(receipt, flipped, backbone)).toBe(false);
	});
});

describe("extendDigest()", () => {
	it("depends on every id, count and answer, and on their order", () => {
		const answer = (n: number) => new Uint8Array(32).fill(n);
		const chain = (...steps: [number, number, Uint8Array][]) =>
			steps.reduce((digest, [id, pairs, hash]) => extendDigest(digest, id, pairs, hash), emptyDigest);
		const digests = [
			chain(),
			chain([1, 8, answer(1)]),
			chain([1, 8, answer(1)], [2, 8, answer(2)]),
			chain([2, 8, answer(2)], [1, 8, answer(1)]),
			chain([1, 8, answer(1)], [2, 7, answer(2)]),
			chain([1, 8, answer(1)], [2, 8, answer(3)]),
			chain([1, 8, answer(1)], [3, 8, answer(2)]),
		].map((digest) => Buffer.from(digest).toString("hex"));
		expect(new Set(digests).size).toBe(digests.length);
	});
});
