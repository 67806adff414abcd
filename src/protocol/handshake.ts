import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { equalBytes, type KeyPair, newEphemeral, verifySignature } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import { encodeHandshake } from "./codec.ts";
import { decodeWelcomeBody, encodeWelcomeBody } from "./handshake-codec.ts";
import { runHandshake } from "./handshake-exchange.ts";
import { backboneProof, sessionKeys, transcriptOf, workerProof } from "./handshake-keys.ts";
import type { Link, Transport } from "./link.ts";
import { type Hello, protocolVersion, type WelcomeBody } from "./messages.ts";
import { payoutIsBound } from "./payout.ts";
import { createSessionLink } from "./session-link.ts";
import { outOfBounds } from "./wire-error.ts";

/** What a worker says about itself; the handshake adds keys and nonce. */
export type HelloFacts = Omit<Hello, "kind" | "version" | "key" | "nonce" | "ephemeral">;

interface HandshakeOptions {
	readonly identity: KeyPair;
	readonly clock: Clock;
	readonly random: Random;
	readonly signal?: AbortSignal | undefined;
}

/**
 * The worker's side: hello, challenge, auth, welcome, within 10 s. Throws `key_changed` when the backbone is not the expected one
 * (before anything is signed), `auth` when it cannot prove its key, and what `runHandshake` throws.
 */
export function dialHandshake(
	transport: Transport,
	options: HandshakeOptions & { readonly hello: HelloFacts; readonly expectedBackbone?: Uint8Array | undefined },
): Promise<{ readonly link: Link; readonly welcome: WelcomeBody; readonly backboneKey: Uint8Array }> {
	const { identity, clock, random } = options;
	return runHandshake(transport, options, async ({ send, receive }) => {
		const ephemeral = newEphemeral();
		const hello = encodeHandshake({
			...options.hello,
			kind: "hello",
			version: protocolVersion,
			key: identity.publicKey,
			nonce: random.bytes(32),
			ephemeral: ephemeral.publicKey,
		});
		send(hello);
		const challenge = await receive("challenge");
		const { key: backboneKey, ephemeral: theirs } = challenge.message;
		refuseOwnKey(identity, backboneKey);
		if (options.expectedBackbone !== undefined && !equalBytes(options.expectedBackbone, backboneKey)) {
			throw new KvasirError("key_changed", "Cannot trust the backbone: its key is not the one expected", {
				hint: "If the swarm's operator announced a new key, join with URL#KEY",
				facts: { expected: options.expectedBackbone, presented: backboneKey },
			});
		}
		const auth = encodeHandshake({
			kind: "auth",
			signature: identity.sign(workerProof(hello, challenge.bytes)),
		});
		send(auth);
		const { message: welcome } = await receive("welcome");
		const transcript = transcriptOf(hello, challenge.bytes, auth, welcome.body);
		if (!verifySignature(backboneKey, backboneProof(transcript), welcome.signature)) {
			throw new KvasirError("auth", "Cannot trust the backbone: its signature does not fit its key");
		}
		const body = decodeWelcomeBody(welcome.body);
		refuseRaisedLimits(options.hello, body);
		const keys = sessionKeys(ephemeral, theirs, transcript);
		const link = createSessionLink(transport, {
			side: "worker",
			peer: backboneKey,
			session: body.session,
			keys: { send: keys.workerToBackbone, receive: keys.backboneToWorker },
			heartbeatMs: body.heartbeatMs,
			deadMs: body.deadMs,
			hidden: body.model.hidden,
			clock,
		});
		return { link, welcome: body, backboneKey };
	});
}

/**
 * The backbone's side. `welcome` makes the body once the worker's key and payout are proved; whether this key may have a link
 * (taken over, stale epoch) is said on the link, after welcome. Throws `auth` and what `runHandshake` throws.
 */
export function acceptHandshake(
	transport: Transport,
	options: HandshakeOptions & { readonly welcome: (hello: Hello) => WelcomeBody },
): Promise<{ readonly link: Link; readonly hello: Hello }> {
	const { identity, clock, random } = options;
	return runHandshake(transport, options, async ({ send, receive }) => {
		const { message: hello, bytes: helloBytes } = await receive("hello");
		refuseOwnKey(identity, hello.key);
		const ephemeral = newEphemeral();
		const challenge = encodeHandshake({
			kind: "challenge",
			version: protocolVersion,
			key: identity.publicKey,
			nonce: random.bytes(32),
			ephemeral: ephemeral.publicKey,
			serverTimeMs: Math.floor(clock.now()),
		});
		send(challenge);
		const auth = await receive("auth");
		if (!verifySignature(hello.key, workerProof(helloBytes, challenge), auth.message.signature)) {
			throw new KvasirError("auth", "Cannot trust the worker: its signature does not fit its key");
		}
		if (!payoutIsBound(hello.key, hello.payout)) {
			throw new KvasirError("auth", "Cannot accept the worker's wallet: its node key did not sign it");
		}
		const body = options.welcome(hello);
		const bodyBytes = encodeWelcomeBody(body);
		const transcript = transcriptOf(helloBytes, challenge, auth.bytes, bodyBytes);
		const keys = sessionKeys(ephemeral, hello.ephemeral, transcript);
		send(
			encodeHandshake({
				kind: "welcome",
				body: bodyBytes,
				signature: identity.sign(backboneProof(transcript)),
			}),
		);
		const link = createSessionLink(transport, {
			side: "backbone",
			peer: hello.key,
			session: body.session,
			keys: { send: keys.backboneToWorker, receive: keys.workerToBackbone },
			heartbeatMs: body.heartbeatMs,
			deadMs: body.deadMs,
			hidden: body.model.hidden,
			clock,
		});
		return { link, hello };
	});
}

function refuseOwnKey(identity: KeyPair, peer: Uint8Array): void {
	if (equalBytes(identity.publicKey, peer)) {
		throw new KvasirError("auth", "Cannot trust the peer: it presents our own key", {
			hint: "Give the backbone and the worker on this machine a home each (--home)",
		});
	}
}

/** The backbone may only lower what the worker offered. */
function refuseRaisedLimits({ offer }: HelloFacts, { limits: granted }: WelcomeBody): void {
	for (const name of ["memoryBytes", "rowsMax", "dispatchesMax", "inFlightBytesMax"] as const) {
		if (granted[name] > offer[name]) throw outOfBounds(`limits.${name}`, `${granted[name]} is above our offer`);
	}
}
