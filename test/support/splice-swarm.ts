import { WebSocket } from "ws";
import { addressOf } from "../../src/io/base58.ts";
import { systemClock } from "../../src/io/clock.ts";
import { type KeyPair, keyPairFromSeed } from "../../src/io/crypto.ts";
import { silentLog } from "../../src/io/log.ts";
import { systemRandom } from "../../src/io/random.ts";
import { signAuthorization } from "../../src/protocol/authorization.ts";
import { type Gateway, type GatewayOptions, startGateway } from "../../src/splice/gateway/gateway.ts";
import { type Hub, type HubOptions, startHub } from "../../src/splice/hub/hub.ts";
import type { RelayCount, RelayStore } from "../../src/splice/hub/relay-meter.ts";
import { type ParkedBackbone, type ParkedBackboneOptions, startParkedBackbone } from "./parked-backbone.ts";

/** Parts that everything of a splice test runs on: the real clock, the real randomness, no log. */
export const realParts = { clock: systemClock, random: systemRandom, log: silentLog };
export const anyPort = { host: "127.0.0.1", port: 0 };
export const hubSecret = new Uint8Array(32).fill(9);
export const model = "tiny";

/** Relay counters in memory, last one by id. */
export interface RelayRows extends RelayStore {
	readonly rows: Map<string, RelayCount>;
}

export function relayRows(): RelayRows {
	const rows = new Map<string, RelayCount>();
	return {
		rows,
		async saveRelays(counts) {
			for (const count of counts) rows.set(count.relay, count);
		},
	};
}

/** A key that is the same on every run. */
export function testKey(number: number): KeyPair {
	return keyPairFromSeed(new Uint8Array(32).fill(number));
}

/** Gateway, hub and an echoing backbone on loopback; closed in reverse order by `await using`. */
export interface SpliceSwarm extends AsyncDisposable {
	readonly gateway: Gateway;
	readonly hub: Hub;
	readonly backbone: ParkedBackbone;
	readonly relays: RelayRows;
	/** `host:port` that workers sign. */
	readonly host: string;
}

export interface SpliceSwarmOptions {
	readonly gateway?: Partial<GatewayOptions>;
	readonly hub?: Partial<HubOptions>;
	readonly backbone?: Partial<ParkedBackboneOptions>;
	/** Instead of counters in memory. */
	readonly relays?: RelayStore;
}

export async function startSpliceSwarm(options: SpliceSwarmOptions = {}): Promise<SpliceSwarm> {
	const relays = relayRows();
	const identity = testKey(200);
	const hub = await startHub(
		{
			relay: anyPort,
			api: anyPort,
			secret: hubSecret,
			backboneKeys: [addressOf(identity.publicKey)],
			ledgerId: "test-ledger",
			...options.hub,
		},
		{ ...realParts, relays: options.relays ?? relays },
	);
	const backbone = await startParkedBackbone({ hub: hub.relay, identity, model, ...options.backbone });
	const gateway = await startGateway(
		{
			listen: anyPort,
			admin: anyPort,
			certificate: null,
			publicHosts: [],
			hub: hub.relay,
			hubSecret,
			...options.gateway,
		},
		realParts,
	);
	return {
		gateway,
		hub,
		backbone,
		relays,
		host: `${gateway.address.host}:${gateway.address.port}`,
		async [Symbol.asyncDispose]() {
			await gateway.close();
			await backbone.close();
			await hub.close();
		},
	};
}

/** A worker's token for this gateway. */
export function tokenFor(host: string, { identity = testKey(1), signedModel = model, offsetSeconds = 0 } = {}): string {
	return signAuthorization(
		{ label: "kvasir/1 relay", host, model: signedModel },
		{ identity, clock: systemClock, random: systemRandom, offsetSeconds },
	);
}

/** Dials like a worker; resolves once the link is open, rejects with what the gateway answered. */
export function dialWorker(
	host: string,
	{
		identity = testKey(1),
		authorization = tokenFor(host, { identity }),
		scheme = "ws",
		path = `/v1/relay?model=${model}`,
		headers = {},
		ca,
	}: {
		identity?: KeyPair;
		authorization?: string;
		scheme?: "ws" | "wss";
		path?: string;
		headers?: Record<string, string>;
		ca?: string;
	} = {},
): Promise<WebSocket> {
	return new Promise((resolve, reject) => {
		const socket = new WebSocket(`${scheme}://${host}${path}`, "kvasir.v1", {
			perMessageDeflate: false,
			headers: { Authorization: authorization, ...headers },
			...(ca === undefined ? {} : { ca }),
		});
		socket.once("open", () => resolve(socket));
		socket.once("unexpected-response", (request, response) => {
			response.resume();
			reject(new WorkerRefused(response.statusCode ?? 0, response.headers));
			request.destroy();
		});
		socket.on("error", reject);
	});
}

/** What a refused worker saw. */
export class WorkerRefused extends Error {
	readonly status: number;
	readonly headers: Record<string, string | string[] | undefined>;
	constructor(status: number, headers: Record<string, string | string[] | undefined>) {
		super(`refused with ${status}`);
		this.status = status;
		this.headers = headers;
	}
}

/** The next binary message. */
export function nextMessage(socket: WebSocket): Promise<Buffer> {
	return new Promise((resolve, reject) => {
		const closed = () => reject(new Error("closed before a message"));
		socket.once("close", closed);
		socket.once("message", (message) => {
			socket.off("close", closed);
			resolve(message as Buffer);
		});
	});
}

/** Waits until something is true, looking again whenever the event loop turns; fails after `ms`. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>, ms = 20_000): Promise<void> {
	const deadline = performance.now() + ms;
	while (!(await holds())) {
		if (performance.now() > deadline) throw new Error(`Not within ${ms} ms: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
}
