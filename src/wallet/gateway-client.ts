import { type Dispatcher, request } from "undici";
import type { z } from "zod";
import { type ErrorCode, exitCodes, KvasirError } from "../errors.ts";
import { addressOf, keyOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import { claimText } from "../protocol/claim-text.ts";
import { signRequest } from "../protocol/request-authorization.ts";
import { serverTime } from "../protocol/server-time.ts";
import {
	balanceSchema,
	creditsSchema,
	type GatewayBalance,
	type GatewayCredit,
	type GatewayPayout,
	payoutSchema,
	payoutsSchema,
} from "./wallet-api.ts";

export interface GatewayClientParts {
	/** `https://gate.example`, or the ws(s) URL that `join` was given: scheme and path are set right. */
	readonly gateway: string;
	readonly clock: Clock;
	readonly random: Random;
	/** Proxy or trust settings. @default undici's global dispatcher */
	readonly dispatcher?: Dispatcher;
}

/** The gateway's wallet API. All throw `network` when it cannot be reached or answers nonsense, and what it refuses with its own words. */
export interface GatewayClient {
	/** Anybody may ask. */
	balance(address: string, signal?: AbortSignal): Promise<GatewayBalance>;
	/** Every receipt of the wallet after entry `after`, ascending; signed by the wallet's key. */
	credits(wallet: KeyPair, after: number, signal?: AbortSignal): AsyncGenerator<GatewayCredit>;
	/** The wallet's claims, newest first; signed by the wallet's key. */
	payouts(wallet: KeyPair, signal?: AbortSignal): Promise<readonly GatewayPayout[]>;
	/** Claims `nano` (null: all that is pending), to be paid to `address`. Throws `payment` when nothing is pending. */
	claim(
		wallet: KeyPair,
		order: { readonly nano: bigint | null; readonly address: string },
		signal?: AbortSignal,
	): Promise<GatewayPayout>;
}

const answerMs = 20_000;
const answerBytesMax = 4 * 2 ** 20;
const pageLimit = 500;

/** The client of one gateway's wallet API. */
export function gatewayClient(parts: GatewayClientParts): GatewayClient {
	const origin = originOf(parts.gateway);
	const send = <S extends z.ZodType>(schema: S, call: Omit<Call, "origin">, signal?: AbortSignal) =>
		ask(parts, schema, { origin, ...call }, signal);
	const client: GatewayClient = {
		balance: (address, signal) => send(balanceSchema, { path: `/v1/wallet/${addressOf(keyOf(address))}` }, signal),
		async *credits(wallet, after, signal) {
			const path = `/v1/wallet/${addressOf(wallet.publicKey)}/credits`;
			for (let cursor = after; ; ) {
				const query = `?after=${cursor}&limit=${pageLimit}`;
				const { credits } = await send(creditsSchema, { path: path + query, signer: wallet }, signal);
				yield* credits;
				const last = credits.at(-1);
				if (last === undefined || credits.length < pageLimit || last.entry <= cursor) return;
				cursor = last.entry;
			}
		},
		async payouts(wallet, signal) {
			const path = `/v1/wallet/${addressOf(wallet.publicKey)}/payouts`;
			return (await send(payoutsSchema, { path, signer: wallet }, signal)).payouts;
		},
		async claim(wallet, order, signal) {
			const address = addressOf(wallet.publicKey);
			const { pending, claims, ledgerId } = await client.balance(address, signal);
			const nano = order.nano ?? pending;
			if (nano === 0n || ledgerId === null) {
				throw new KvasirError("payment", "Cannot claim: nothing is pending", { hint: "kvasir wallet balance" });
			}
			const claim = {
				ledgerId: Buffer.from(ledgerId, "hex"),
				wallet: wallet.publicKey,
				number: claims + 1,
				nano,
				address: keyOf(order.address),
			};
			const signature = Buffer.from(wallet.sign(claimText(claim))).toString("base64");
			const body = { ledgerId, number: claim.number, nano: String(nano), address: order.address, signature };
			return send(payoutSchema, { path: `/v1/wallet/${address}/claims`, body }, signal);
		},
	};
	return client;
}

/** `wss://gate.example/v1/relay#key` -> `https://gate.example`. Throws `usage`. */
export function originOf(gateway: string): string {
	const url = URL.canParse(gateway) ? new URL(gateway) : null;
	const scheme = { "https:": "https:", "wss:": "https:", "http:": "http:", "ws:": "http:" }[url?.protocol ?? ""];
	if (url === null || scheme === undefined) {
		throw new KvasirError("usage", `Cannot use "${gateway}" as a gateway: not a URL`, {
			hint: "Such as wss://gate.example",
		});
	}
	return `${scheme}//${url.host}`;
}

interface Call {
	readonly origin: string;
	/** With its query. */
	readonly path: string;
	readonly body?: unknown;
	readonly signer?: KeyPair;
}

async function ask<S extends z.ZodType>(
	parts: GatewayClientParts,
	schema: S,
	call: Call,
	signal?: AbortSignal,
): Promise<z.output<S>> {
	const { origin, path } = call;
	const method = call.body === undefined ? "GET" : "POST";
	const time = serverTime(parts.clock);
	const send = () => {
		const by = { clock: time.clock, random: parts.random };
		const authorization =
			call.signer === undefined ? undefined : signRequest({ method, path }, { identity: call.signer }, by);
		return exchange(parts, call, {
			method,
			headers: {
				accept: "application/json",
				...(authorization === undefined ? {} : { authorization }),
				...(call.body === undefined ? {} : { "content-type": "application/json" }),
			},
			...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
			...(signal === undefined ? {} : { signal }),
		});
	};
	let answer = await send();
	if (answer.status === 401 && time.learn(answer.headers)) answer = await send();
	const { status, text } = answer;
	if (status !== 200) throw refusedBy(origin, status, text);
	const parsed = schema.safeParse(jsonOrNull(text));
	if (parsed.success) return parsed.data;
	throw new KvasirError(
		"network",
		`Cannot understand the gateway at ${origin}: unexpected answer to ${path.split("?")[0]}`,
		{
			hint: "Is it a Kvasir gateway of this version?",
		},
	);
}

type Options = NonNullable<Parameters<typeof request>[1]>;

async function exchange(parts: GatewayClientParts, { origin, path }: Call, options: Options) {
	const timeouts = { headersTimeout: answerMs, bodyTimeout: answerMs };
	const through = parts.dispatcher === undefined ? {} : { dispatcher: parts.dispatcher };
	try {
		const response = await request(origin + path, { ...options, ...timeouts, ...through });
		const { statusCode: status, headers } = response;
		return { status, headers, text: await boundedText(response.body) };
	} catch (cause) {
		if (cause instanceof KvasirError || (options.signal instanceof AbortSignal && options.signal.aborted)) throw cause;
		throw new KvasirError("network", `Cannot reach the gateway at ${origin}: ${(cause as Error).message}`, {
			hint: "Check its address, or name another with --gateway",
			cause,
		});
	}
}

async function boundedText(body: AsyncIterable<Uint8Array>): Promise<string> {
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	for await (const chunk of body) {
		bytes += chunk.length;
		if (bytes > answerBytesMax)
			throw new KvasirError("bounds", `Cannot read the gateway's answer: more than ${answerBytesMax} bytes`);
		chunks.push(chunk);
	}
	return Buffer.concat(chunks).toString("utf8");
}

/** A gateway says no with `{"error":{"code","message"}}`; its codes are ours. */
function refusedBy(origin: string, status: number, text: string): KvasirError {
	const error = (jsonOrNull(text) as { error?: { code?: unknown; message?: unknown } } | null)?.error;
	const reason = typeof error?.message === "string" ? error.message.slice(0, 300) : `status ${status}`;
	const known =
		typeof error?.code === "string" && Object.hasOwn(exitCodes, error.code) ? (error.code as ErrorCode) : null;
	const code = known ?? (status === 401 || status === 403 ? "auth" : "network");
	return new KvasirError(code, `Cannot get an answer from the gateway at ${origin}: ${reason}`);
}

function jsonOrNull(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return null;
	}
}
