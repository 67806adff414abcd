import { z } from "zod";
import { KvasirError } from "../errors.ts";
import type { ReceiptStatus } from "./entry.ts";
import { receiptLimits } from "./receipt.ts";

/** What the worker said to a receipt: it agrees, it has other figures, or it did not answer in time (null). */
export type WorkerAnswer =
	| { readonly signature: Uint8Array }
	| { readonly pairs: number; readonly digest: Uint8Array }
	| null;

/** A receipt on its way from a backbone to the hub. */
export interface ReceiptSubmission {
	/** The receipt's bytes as they were signed. */
	readonly body: Uint8Array;
	/** The backbone's. */
	readonly signature: Uint8Array;
	readonly answer: WorkerAnswer;
}

const refusalCodes = [
	"bad_receipt",
	"bad_signature",
	"not_listed",
	"other_ledger",
	"unknown_policy",
	"broken_chain",
	"implausible",
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

/** The hub's answer. Everything but `refused` is stored durably and final; a refused receipt may be sent again. */
export type ReceiptVerdict =
	| { readonly status: ReceiptStatus; readonly entry: number }
	| { readonly status: "refused"; readonly code: RefusalCode; readonly text: string };

const bytes = (max: number) =>
	z
		.base64()
		.max(Math.ceil(max / 3) * 4)
		.transform((text) => new Uint8Array(Buffer.from(text, "base64")));

const submissionSchema = z.strictObject({
	body: bytes(receiptLimits.bodyBytes),
	signature: bytes(64),
	answer: z
		.union([
			z.strictObject({ signature: bytes(64) }),
			z.strictObject({ pairs: z.number().int().nonnegative().max(receiptLimits.pairs), digest: bytes(32) }),
		])
		.nullable(),
});

/**
 * The JSON body of POST /receipts: `{body, signature, answer: {signature} | {pairs, digest} | null}`, bytes in base64.
 * The answer is `ReceiptVerdict` as it is, with 200, or 422 for `refused`.
 */
export function submissionJson(s: ReceiptSubmission): unknown {
	const base64 = (value: Uint8Array) => Buffer.from(value).toString("base64");
	const answer =
		s.answer === null
			? null
			: "signature" in s.answer
				? { signature: base64(s.answer.signature) }
				: { pairs: s.answer.pairs, digest: base64(s.answer.digest) };
	return { body: base64(s.body), signature: base64(s.signature), answer };
}

/** Reads the body of POST /receipts. Throws `malformed`. */
export function parseSubmission(json: unknown): ReceiptSubmission {
	const parsed = submissionSchema.safeParse(json);
	if (!parsed.success) {
		const issue = parsed.error.issues[0];
		throw new KvasirError(
			"malformed",
			`Cannot read the receipt's submission: ${issue?.path.join(".")} ${issue?.message}`,
		);
	}
	return parsed.data;
}

const verdictSchema = z.union([
	z.strictObject({ status: z.enum(["unconfirmed", "confirmed", "disputed", "conflict"]), entry: z.number().int() }),
	z.strictObject({ status: z.literal("refused"), code: z.enum(refusalCodes), text: z.string().max(1024) }),
]);

/** Reads the hub's answer to POST /receipts. Throws `malformed`. */
export function parseVerdict(json: unknown): ReceiptVerdict {
	const parsed = verdictSchema.safeParse(json);
	if (!parsed.success)
		throw new KvasirError("malformed", "Cannot read the hub's answer to a receipt: unexpected shape");
	return parsed.data;
}
