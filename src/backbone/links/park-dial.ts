import http, { type IncomingMessage } from "node:http";
import net, { type Socket } from "node:net";
import { KvasirError } from "../../errors.ts";
import { addressOf } from "../../io/base58.ts";
import type { Clock } from "../../io/clock.ts";
import type { KeyPair } from "../../io/crypto.ts";
import type { Random } from "../../io/random.ts";
import { signAuthorization } from "../../protocol/authorization.ts";
import type { HubFacts } from "../pay/hub-api.ts";

/** From the dial to the hub's answer. */
const answerMs = 10_000;
/** Notices a hub that vanished while nothing is said. */
const keepAliveMs = 15_000;
/** The longest Retry-After that is kept. */
const retryAfterMsMax = 600_000;

export interface HubAddress {
	readonly host: string;
	/** Of the hub's relay. */
	readonly port: number;
}

export interface ParkDial {
	readonly hub: HubAddress;
	readonly model: string;
	readonly identity: KeyPair;
	readonly clock: Clock;
	readonly random: Random;
	readonly signal: AbortSignal;
	/** Hex ledgerId the hub is expected to keep; empty at first. */
	readonly ledgerId: string;
	/** What the hub's clock is ahead of ours, seconds. */
	readonly offsetSeconds: number;
}

/** A socket that waits at the hub, or why there is none. */
export type Parked =
	| { readonly kind: "parked"; readonly socket: Socket; readonly hub: HubFacts }
	/** Our clock is wrong by this much: dial again with it. */
	| { readonly kind: "skew"; readonly offsetSeconds: number }
	| { readonly kind: "failed"; readonly error: KvasirError; readonly retryAfterMs: number };

/** Dials the hub and parks the connection there (wire.md section 4). Never rejects. */
export function dialPark(dial: ParkDial): Promise<Parked> {
	const { hub, model, clock, signal } = dial;
	return new Promise((resolve) => {
		const authorization = signAuthorization({ label: "kvasir/1 park", host: dial.ledgerId, model }, dial);
		const request = http.request({
			method: "GET",
			host: hub.host,
			port: hub.port,
			path: `/backbone?${new URLSearchParams({ model })}`,
			headers: { connection: "Upgrade", upgrade: "kvasir-park", authorization },
			// An end in one direction leaves the other: the last answers of a leaving worker still arrive.
			createConnection: () => net.connect({ host: hub.host, port: hub.port, allowHalfOpen: true }),
		});
		function settle(result: Parked): void {
			cancelTimer();
			signal.removeEventListener("abort", abort);
			resolve(result);
			if (result.kind !== "parked") request.destroy();
		}
		const abort = () => settle(failed(hub, "closed", "the backbone is closing"));
		const cancelTimer = clock.after(answerMs, () => settle(failed(hub, "network", "no answer in 10 s")));
		signal.addEventListener("abort", abort, { once: true });
		request.on("error", (error) => settle(unreachable(hub, error)));
		request.on("response", (response) => {
			response.resume();
			settle(refused(response, dial));
		});
		request.on("upgrade", (response, socket, head) => {
			socket.on("error", () => {});
			if (head.length > 0) socket.unshift(head);
			settle(parked(response, socket as Socket, hub));
		});
		if (signal.aborted) abort();
		else request.end();
	});
}

function parked({ headers }: IncomingMessage, socket: Socket, hub: HubAddress): Parked {
	const apiPort = Number(headers["x-kvasir-api"]);
	const ledgerId = headers["x-kvasir-ledger"];
	const isPort = Number.isInteger(apiPort) && apiPort >= 1 && apiPort <= 65_535;
	const isLedger = typeof ledgerId === "string" && /^[0-9a-f]{32}$/.test(ledgerId);
	if (headers.upgrade !== "kvasir-park" || !isPort || !isLedger) {
		socket.destroy();
		return failed(hub, "network", "it is not a hub");
	}
	socket.setNoDelay(true).setKeepAlive(true, keepAliveMs);
	return {
		kind: "parked",
		socket,
		hub: { host: hub.host, apiPort, ledgerId: new Uint8Array(Buffer.from(ledgerId, "hex")) },
	};
}

function refused({ statusCode, headers }: IncomingMessage, { hub, identity, clock }: ParkDial): Parked {
	const retryAfterMs = Math.min(retryAfterMsMax, (Number(headers["retry-after"]) || 0) * 1000);
	const serverTime = Number(headers["x-kvasir-time"]);
	if (statusCode === 401 && serverTime > 0) {
		return { kind: "skew", offsetSeconds: Math.round(serverTime - clock.now() / 1000) };
	}
	if (statusCode === 401) return failed(hub, "auth", "our signature is refused", { retryAfterMs });
	if (statusCode !== 403) return failed(hub, "network", `it answered ${statusCode}`, { retryAfterMs });
	const key = addressOf(identity.publicKey);
	const hint = `kvasir serve-hub --backbone-key ${key}`;
	return failed(hub, "auth", `our key ${key} is not on its list`, { retryAfterMs, hint });
}

function unreachable(hub: HubAddress, error: NodeJS.ErrnoException): Parked {
	if (error.code !== "ECONNREFUSED") return failed(hub, "network", error.message);
	return failed(hub, "refused", "nobody listens there", {
		hint: "Is the hub running, and is this its --relay address?",
	});
}

function failed(
	{ host, port }: HubAddress,
	code: "network" | "refused" | "auth" | "closed",
	state: string,
	{ retryAfterMs = 0, hint }: { retryAfterMs?: number; hint?: string } = {},
): Parked {
	const message = `Cannot park at the hub ${host}:${port}: ${state}`;
	return { kind: "failed", retryAfterMs, error: new KvasirError(code, message, hint === undefined ? {} : { hint }) };
}
