import type { IncomingMessage } from "node:http";
import { addressOf } from "../../io/base58.ts";
import type { Clock } from "../../io/clock.ts";
import type { NonceCache } from "../../protocol/nonce-cache.ts";
import { checkRequest } from "../../protocol/request-authorization.ts";
import type { CallerKind } from "./route.ts";

export interface CallerParts {
	readonly clock: Clock;
	readonly nonces: NonceCache;
	/** Shared by gateway and hub; absent where nobody signs with it. */
	readonly secret?: Uint8Array;
	/** Base58 keys of the listed backbones. */
	readonly backboneKeys?: ReadonlySet<string>;
}

/** The proved key of a backbone or a key (null for the others), or why the caller may not. */
export type CallerCheck =
	| { readonly ok: true; readonly key: Uint8Array | null }
	| { readonly ok: false; readonly status: 401 | 403; readonly reason: string };

/** Checks that the caller of a route is of the kind the route wants. */
export function authenticateCaller(
	kind: CallerKind,
	{ method = "", headers }: IncomingMessage,
	{ path, body }: { path: string; body: Uint8Array },
	{ clock, nonces, secret, backboneKeys }: CallerParts,
): CallerCheck {
	if (kind === "anyone") return { ok: true, key: null };
	const check = checkRequest(
		headers.authorization,
		{ method, path, body },
		{ clock, nonces, ...(secret === undefined ? {} : { secret }) },
	);
	if (!check.ok) return { ok: false, status: 401, reason: check.reason };
	const key = check.by === "key" ? check.key : null;
	if (kind === "gateway" ? key !== null : key === null) return { ok: false, status: 403, reason: "caller" };
	if (kind === "backbone" && backboneKeys?.has(addressOf(key!)) !== true) {
		return { ok: false, status: 403, reason: "not_listed" };
	}
	return { ok: true, key };
}
