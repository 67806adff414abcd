import {
	readAuth,
	readChallenge,
	readHello,
	readWelcome,
	writeAuth,
	writeChallenge,
	writeHello,
	writeWelcome,
} from "./handshake-codec.ts";
import { limits } from "./limits.ts";
import { type HandshakeMessage, messageKinds, protocolVersion, type SessionMessage } from "./messages.ts";
import { MsgpackReader } from "./msgpack-reader.ts";
import { MsgpackWriter } from "./msgpack-writer.ts";
import { readSession, sessionFields, writeSession } from "./session-codec.ts";
import { malformed, outOfBounds } from "./wire-error.ts";

/** A message as bytes: the msgpack up to the tensor, and the tensor as the sender holds it (null where there is none). */
export interface Encoded {
	readonly header: Uint8Array;
	readonly tensor: Uint8Array | null;
}

/** Encodes a message after welcome. Throws `bounds` for one that no peer would accept. */
export function encodeSession(message: Exclude<SessionMessage, { kind: "unknown" }>): Encoded {
	const w = new MsgpackWriter();
	writeSession(w, message);
	const tensor = message.kind === "dispatch" ? message.rows : message.kind === "partials" ? message.vectors : null;
	const bytes = w.bytes.length + (tensor?.length ?? 0);
	if (bytes > limits.messageBytes) throw outOfBounds(message.kind, `${bytes} bytes, more than ${limits.messageBytes}`);
	return { header: w.bytes, tensor };
}

/** Encodes a handshake message. */
export function encodeHandshake(message: HandshakeMessage): Uint8Array {
	const w = new MsgpackWriter();
	if (message.kind === "hello") writeHello(w, message);
	else if (message.kind === "challenge") writeChallenge(w, message);
	else if (message.kind === "auth") writeAuth(w, message);
	else writeWelcome(w, message);
	return w.bytes;
}

/** A handshake message of a version that is not ours: nothing after the version is read. */
export interface OtherVersion {
	readonly kind: "other_version";
	readonly version: number;
}

/** Decodes a message before welcome. Throws `malformed` or `bounds`, naming the field. */
export function decodeHandshake(bytes: Uint8Array): HandshakeMessage | OtherVersion {
	const r = new MsgpackReader(bytes);
	let other: OtherVersion | null = null;
	const message = r.recordOf("handshake", (count): [HandshakeMessage | null, number] => {
		const kind = r.uint("kind");
		if (kind === messageKinds.auth) return [readAuth(r), 2];
		if (kind === messageKinds.welcome) return [readWelcome(r), 3];
		if (kind !== messageKinds.hello && kind !== messageKinds.challenge) {
			throw malformed("kind", `${kind} is not a handshake message`);
		}
		const version = r.uint("version");
		if (version !== protocolVersion) {
			other = { kind: "other_version", version };
			return [null, Math.min(2, count)];
		}
		return kind === messageKinds.hello ? [readHello(r, version), 12] : [readChallenge(r, version), 6];
	});
	r.end("handshake");
	return message ?? other!;
}

/**
 * Decodes a message after welcome; tensors are views into `bytes`. An unknown kind is a value, not an error.
 * Throws `malformed` or `bounds`, naming the field; allocates no more than the message's own size.
 *
 * @param hidden the model's width, which tensor sizes are checked against
 */
export function decodeSession(bytes: Uint8Array, hidden: number): SessionMessage {
	if (bytes.length > limits.messageBytes) throw outOfBounds("message", `${bytes.length} bytes`);
	const r = new MsgpackReader(bytes);
	const message = r.recordOf("message", (count): [SessionMessage, number] => {
		const kind = r.uint("kind");
		if (kind < messageKinds.assign) throw malformed("kind", `${kind} belongs before welcome`);
		const fields = sessionFields[kind];
		if (fields === undefined) return [{ kind: "unknown", number: kind }, 1];
		if (count - 1 < fields) throw malformed("message", `${count - 1} fields, not ${fields}, in kind ${kind}`);
		const [value, taken] = readSession(r, kind, count - 1, hidden);
		return [value, taken + 1];
	});
	r.end("message");
	return message;
}
