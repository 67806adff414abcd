import { z } from "zod";
import { KvasirError } from "../../errors.ts";
import { addressOf, keyOf } from "../../io/base58.ts";
import type { SignedClaim } from "../../ledger/gateway-claims.ts";
import type { GatewayStore } from "../../ledger/gateway-store.ts";
import { readCount, readJson } from "../http/read-request.ts";
import { failure, type Route, type RouteAnswer, type RouteRequest } from "../http/route.ts";

// The gateway's public wallet API. Bytes are hex (ledgerId) or base64 (signature), keys base58, every bigint a decimal string.
//
//   GET  /v1/wallet/ADDRESS                               anyone: WalletBalance
//   GET  /v1/wallet/ADDRESS/credits?after=N&limit=N       signed by ADDRESS: {"credits": CreditLine[]}
//   GET  /v1/wallet/ADDRESS/payouts                       signed by ADDRESS: {"payouts": Payout[]}
//   POST /v1/wallet/ADDRESS/claims                        {"ledgerId","number","nano","address","signature"}: Payout
//
// A signed request carries the Authorization of request-authorization.ts; a claim is signed itself (claim-text.ts).

const creditsMax = 1_000;

const claimSchema = z.strictObject({
	ledgerId: z.string().regex(/^[0-9a-f]{32}$/),
	number: z.number().int().positive(),
	nano: z.string().regex(/^[1-9]\d{0,18}$/),
	address: z.string().max(64),
	signature: z.base64().max(88),
});

/** The wallet API's routes over the gateway's store. */
export function walletRoutes(store: Pick<GatewayStore, "balance" | "credits" | "payouts" | "claim">): Route[] {
	return [
		{
			method: "GET",
			path: "/v1/wallet/:address",
			caller: "anyone",
			handle: async ({ params }) => answer(await store.balance(addressIn(params))),
		},
		{
			method: "GET",
			path: "/v1/wallet/:address/credits",
			caller: "key",
			handle: (request) =>
				ownerOnly(request, async (address) => {
					const after = readCount(request.query, "after", 0, Number.MAX_SAFE_INTEGER);
					const limit = readCount(request.query, "limit", creditsMax, creditsMax);
					return answer({ credits: await store.credits(address, after, limit) });
				}),
		},
		{
			method: "GET",
			path: "/v1/wallet/:address/payouts",
			caller: "key",
			handle: (request) => ownerOnly(request, async (address) => answer({ payouts: await store.payouts(address) })),
		},
		{
			method: "POST",
			path: "/v1/wallet/:address/claims",
			caller: "anyone",
			handle: async ({ params, body }) => answer(await store.claim(readClaim(addressIn(params), readJson(body)))),
		},
	];
}

async function ownerOnly(
	request: RouteRequest,
	serve: (address: string) => Promise<RouteAnswer>,
): Promise<RouteAnswer> {
	const address = addressIn(request.params);
	if (addressOf(request.key!) === address) return serve(address);
	return failure(403, "not_owner", "Only the wallet's own key may see this");
}

/** Throws `bad_key`. */
function addressIn({ address = "" }: Readonly<Record<string, string>>): string {
	return addressOf(keyOf(address.slice(0, 64)));
}

/** Throws `malformed` or `bad_key`. */
function readClaim(wallet: string, json: unknown): SignedClaim {
	const parsed = claimSchema.safeParse(json);
	if (!parsed.success) {
		const issue = parsed.error.issues[0];
		throw new KvasirError("malformed", `Cannot read the claim: ${issue?.path.join(".")} ${issue?.message}`);
	}
	const { ledgerId, number, nano, address, signature } = parsed.data;
	return {
		ledgerId: Buffer.from(ledgerId, "hex"),
		wallet: keyOf(wallet),
		number,
		nano: BigInt(nano),
		address: keyOf(address),
		signature: Buffer.from(signature, "base64"),
	};
}

function answer(value: unknown): RouteAnswer {
	const text = JSON.stringify(value, (_, field) => (typeof field === "bigint" ? String(field) : field));
	return { status: 200, text };
}
