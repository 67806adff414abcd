import { Agent, request } from "undici";
import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import { type Diverged, parsePage } from "../../ledger/entry.ts";
import type { GatewayStore } from "../../ledger/gateway-store.ts";
import { type FetchEntries, type PollerState, pollCredits } from "../../ledger/poller.ts";
import { signRequest } from "../../protocol/request-authorization.ts";
import { serverTime } from "../../protocol/server-time.ts";
import { formatHostPort, type HostPort } from "../program/readers.ts";

const pageBytesMax = 4 * 2 ** 20;
const connectMs = 5_000;
/** Beyond the long poll itself. */
const answerMarginMs = 10_000;

export interface CreditParts {
	readonly hubApi: HostPort;
	/** The gateway-hub secret: each poll is signed with it. */
	readonly secret: Uint8Array;
	readonly store: GatewayStore;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
}

/** Polls the hub's ledger and credits wallets until closed. */
export function creditFromHub(parts: CreditParts): { state(): PollerState; close(): Promise<void> } {
	const stop = new AbortController();
	const dispatcher = new Agent({ connections: 1, connectTimeout: connectMs, maxResponseSize: pageBytesMax });
	let state: PollerState = { state: "unreachable", credited: 0, error: null };
	const polling = pollCredits({
		...parts,
		fetchEntries: fetchFrom(parts, dispatcher),
		signal: stop.signal,
		onState: (newest) => {
			state = newest;
		},
	});
	return {
		state: () => state,
		async close() {
			stop.abort();
			await polling;
			await dispatcher.destroy();
		},
	};
}

function fetchFrom({ hubApi, secret, clock, random }: CreditParts, dispatcher: Agent): FetchEntries {
	const time = serverTime(clock);
	return async ({ after, hash, limit, waitMs }, signal) => {
		const path = `/ledger/entries?after=${after}&hash=${hash}&limit=${limit}&wait=${waitMs}`;
		const get = () =>
			request(`http://${formatHostPort(hubApi)}${path}`, {
				dispatcher,
				signal,
				headersTimeout: waitMs + answerMarginMs,
				bodyTimeout: answerMarginMs,
				headers: { authorization: signRequest({ method: "GET", path }, { secret }, { clock: time.clock, random }) },
			});
		let response = await get();
		if (response.statusCode === 401 && time.learn(response.headers)) {
			await response.body.dump();
			response = await get();
		}
		const body = (await response.body.json()) as Diverged;
		if (response.statusCode === 200) return parsePage(body);
		if (response.statusCode === 409 && "diverged" in body) return body;
		throw new KvasirError("network", `Cannot poll the hub's ledger: it answered ${response.statusCode}`);
	};
}
