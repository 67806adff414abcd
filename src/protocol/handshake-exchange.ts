import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { decodeHandshake, type OtherVersion } from "./codec.ts";
import { limits } from "./limits.ts";
import type { LinkEnd, Transport } from "./link.ts";
import { closeCodes, type HandshakeMessage, protocolVersion } from "./messages.ts";

/** A decoded handshake message with its bytes as they came, for the hashes. */
export type Received<K extends HandshakeMessage["kind"]> = {
	readonly message: Extract<HandshakeMessage, { kind: K }>;
	readonly bytes: Uint8Array;
};

/** What either side of a handshake does with its transport: awaits messages in order, within 16 KiB and 10 s in all. */
export interface Exchange {
	send(bytes: Uint8Array): void;
	receive<K extends HandshakeMessage["kind"]>(kind: K): Promise<Received<K>>;
}

/**
 * Runs one side of a handshake; whatever goes wrong closes the transport with the code that says why and is thrown.
 * Throws `timeout`, `version`, `auth`, `key_changed`, `malformed`, `bounds`, `closed`, or the signal's reason.
 */
export async function runHandshake<T>(
	transport: Transport,
	{ clock, signal }: { clock: Clock; signal?: AbortSignal | undefined },
	steps: (exchange: Exchange) => Promise<T>,
): Promise<T> {
	transport.limitMessages?.(limits.handshakeBytes);
	let fail: (error: unknown) => void = () => {};
	const failed = new Promise<never>((_, reject) => {
		fail = reject;
	});
	failed.catch(() => {});
	const cancelTimer = clock.after(limits.handshakeMs, () => fail(timedOut()));
	const onAbort = () => fail(signal?.reason);
	signal?.addEventListener("abort", onAbort, { once: true });
	transport.ended.then((end) => fail(endedEarly(end)));
	try {
		signal?.throwIfAborted();
		return await Promise.race([steps(exchangeOver(transport, failed)), failed]);
	} catch (error) {
		transport.onMessage = null;
		transport.close(closeCodeOf(error), error instanceof KvasirError ? error.code : "going away");
		throw error;
	} finally {
		cancelTimer();
		signal?.removeEventListener("abort", onAbort);
	}
}

function exchangeOver(transport: Transport, failed: Promise<never>): Exchange {
	let bytesTaken = 0;
	/** Takes exactly one message: what follows waits in the transport for the link. */
	function nextMessage(): Promise<Uint8Array> {
		return new Promise((resolve) => {
			transport.onMessage = (bytes) => {
				transport.onMessage = null;
				resolve(bytes);
			};
		});
	}
	return {
		send: (bytes) => transport.send([bytes]),
		async receive(kind) {
			const bytes = await Promise.race([nextMessage(), failed]);
			bytesTaken += bytes.length;
			if (bytesTaken > limits.handshakeBytes) {
				throw new KvasirError("bounds", `Cannot accept the handshake: more than ${limits.handshakeBytes} bytes`, {
					facts: { field: "handshake" },
				});
			}
			const message = decodeHandshake(bytes);
			if (message.kind === "other_version") throw otherVersion(message);
			if (message.kind !== kind) {
				throw new KvasirError("malformed", `Cannot go on with the handshake: ${message.kind} came, not ${kind}`, {
					facts: { field: "kind" },
				});
			}
			return { message, bytes } as never;
		},
	};
}

function otherVersion({ version }: OtherVersion): KvasirError {
	return new KvasirError("version", `Cannot talk to the peer: it speaks version ${version}, not ${protocolVersion}`, {
		hint: "Update the older of the two",
		facts: { version },
	});
}

function timedOut(): KvasirError {
	return new KvasirError("timeout", `Cannot finish the handshake: not done within ${limits.handshakeMs / 1000} s`);
}

/** The peer's close code says whose fault it is. */
function endedEarly({ code, reason }: LinkEnd): KvasirError {
	const facts = { closeCode: code, reason };
	if (code === closeCodes.version) {
		return new KvasirError("version", "Cannot connect: the peer speaks another version", {
			hint: "Update the older of the two",
			facts,
		});
	}
	if (code === closeCodes.auth) return new KvasirError("auth", `Cannot connect: not believed (${reason})`, { facts });
	if (code === closeCodes.handshakeTimeout) {
		return new KvasirError("timeout", "Cannot connect: the peer says the handshake took too long", { facts });
	}
	return new KvasirError("closed", `Cannot finish the handshake: the connection ended (${code} ${reason})`, { facts });
}

function closeCodeOf(error: unknown): number {
	if (!(error instanceof KvasirError)) return closeCodes.goingAway;
	if (error.code === "timeout") return closeCodes.handshakeTimeout;
	if (error.code === "version") return closeCodes.version;
	if (error.code === "malformed" || error.code === "bounds") return closeCodes.malformed;
	if (error.code === "closed") return closeCodes.goingAway;
	return closeCodes.auth;
}
