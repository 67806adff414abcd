import type { Clock } from "../io/clock.ts";
import type { Logger } from "../io/log.ts";
import type { Random } from "../io/random.ts";
import { spliceLimits } from "./limits.ts";

/**
 * The fixed table: every reason why a stranger is not spliced, with the status it is told. A reason is also the outcome's name in
 * metrics and in the log; docs/operating.md explains each. Nothing from the inside is ever quoted.
 */
export const refusalReasons = {
	not_http: 400,
	body: 400,
	websocket_key: 400,
	model: 400,
	backbone: 400,
	park: 400,
	missing: 401,
	malformed: 401,
	signature: 401,
	skew: 401,
	replay: 401,
	banned: 403,
	not_listed: 403,
	invite_missing: 403,
	invite_unknown: 403,
	invite_used: 403,
	invite_expired: 403,
	path: 404,
	method: 405,
	slow: 408,
	model_needed: 409,
	target: 414,
	upgrade: 426,
	websocket_version: 426,
	subprotocol: 426,
	attempts_per_address: 429,
	requests_per_address: 429,
	slices_per_address: 429,
	slices_per_key: 429,
	links_per_address: 429,
	links_per_key: 429,
	admit_rate: 429,
	parked_full: 429,
	head: 431,
	hub_refused: 502,
	hub_accept: 502,
	backbone_answer: 502,
	draining: 503,
	hub_dial: 503,
	hub_closed: 503,
	hub_timeout: 503,
	hub_malformed: 503,
	no_backbone: 503,
	not_ready: 503,
	none_parked: 503,
	waiting_full: 503,
	backbone_refused: 503,
	backbone_closed: 503,
	backbone_timeout: 503,
	backbone_malformed: 503,
	admission_unavailable: 503,
	closing: 503,
	internal: 503,
} as const;
export type RefusalReason = keyof typeof refusalReasons;

/** One refusal; the reason decides the status, `headers` are ours. */
export interface Refusal {
	readonly reason: RefusalReason;
	readonly retryAfterSeconds?: number;
	readonly headers?: Readonly<Record<string, string>>;
}

/** The refusal of a request that the HTTP parser gave up on. */
export function parserRefusal(error: NodeJS.ErrnoException): Refusal {
	if (error.code === "HPE_HEADER_OVERFLOW") return { reason: "head" };
	if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") return { reason: "slow" };
	return { reason: "not_http" };
}

/** The refusal of a request that failed on our side, which no request may turn into more than that; logged, nothing quoted. */
export function internalRefusal(error: unknown, log: Logger): Refusal {
	log.error({ error: error instanceof Error ? error.stack : String(error) }, "a request failed");
	return { reason: "internal", retryAfterSeconds: spliceLimits.retryAfterAwaySecondsMax };
}

/** A refusal that asks to come back: after 1 to 30 s where we are busy (429), 1 to 5 s where hub or backbone are away (503); drawn, so that a crowd does not come back at once. */
export function later(reason: RefusalReason, random: Random): Refusal {
	const max =
		refusalReasons[reason] === 429 ? spliceLimits.retryAfterBusySecondsMax : spliceLimits.retryAfterAwaySecondsMax;
	return { reason, retryAfterSeconds: 1 + Math.floor(random.uniform() * max) };
}

/** Our time in unix seconds, told to a peer whose signature's time is too far off. */
export function timeHeader(clock: Clock): Record<string, string> {
	return { "X-Kvasir-Time": String(Math.floor(clock.now() / 1000)) };
}
