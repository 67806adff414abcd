import { z } from "zod";

// What the gateway's wallet API answers (src/splice/gateway/wallet-routes.ts serves it): bigint travels as decimal strings.

const nano = z
	.string()
	.regex(/^\d{1,19}$/)
	.transform(BigInt);
const count = z.number().int().nonnegative();
const text = z.string().max(256);

const creditLineSchema = z.object({
	entry: count,
	kind: z.enum(["receipt", "confirm", "conflict"]),
	receipt: text,
	worker: text,
	backbone: text,
	session: text,
	receiptNumber: count,
	servedBytes: nano,
	paidBytes: nano,
	rate: nano,
	nano,
	status: text,
	reason: text.nullable(),
	unpaid: z.record(text, count),
	atMs: count,
});

export const balanceSchema = z.object({
	address: text,
	pending: nano,
	claimed: nano,
	paid: nano,
	servedBytes: nano,
	lastReceipt: creditLineSchema.nullable(),
	claims: count,
	cursorLag: count,
	polledAtMs: count,
	ledgerId: text.nullable(),
});

export const payoutSchema = z.object({
	id: text,
	wallet: text,
	number: count,
	nano,
	address: text,
	state: z.enum(["claimed", "paid", "failed"]),
	reference: text.nullable(),
	reason: z.string().max(1024).nullable(),
	claimedAtMs: count,
	exportedAtMs: count.nullable(),
	settledAtMs: count.nullable(),
});

export const creditsSchema = z.object({ credits: z.array(creditLineSchema).max(1000) });
export const payoutsSchema = z.object({ payouts: z.array(payoutSchema).max(1000) });

/** A wallet at a gateway; amounts in nano-KVR. */
export type GatewayBalance = z.output<typeof balanceSchema>;
/** One receipt of a wallet and what became of it at the gateway. */
export type GatewayCredit = z.output<typeof creditLineSchema>;
/** One claim of a wallet. */
export type GatewayPayout = z.output<typeof payoutSchema>;
