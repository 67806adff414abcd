import type { HandshakeMessage, SessionMessage, WelcomeBody } from "../../src/protocol/messages.ts";
import { tensorBytes } from "../../src/protocol/tensor.ts";

/** `length` bytes that count up from `first`. */
export function bytes(length: number, first = 0): Uint8Array {
	return Uint8Array.from({ length }, (_, i) => (first + i) & 255);
}

/** The width of the model in the samples. */
export const sampleHidden = 4;

export const sampleWelcomeBody: WelcomeBody = {
	session: bytes(16, 1),
	heartbeatMs: 15_000,
	deadMs: 45_000,
	limits: { memoryBytes: 2 ** 33, rowsMax: 64, dispatchesMax: 4, inFlightBytesMax: 2 ** 24 },
	model: {
		modelId: bytes(32, 2),
		name: "sample",
		layers: 4,
		experts: 8,
		topK: 2,
		hidden: sampleHidden,
		expertWidth: 8,
	},
	backbones: [bytes(32, 3)],
};

/** One message of every kind before welcome. */
export const sampleHandshakes: readonly HandshakeMessage[] = [
	{
		kind: "hello",
		version: 1,
		key: bytes(32, 10),
		nonce: bytes(32, 11),
		ephemeral: bytes(32, 12),
		instance: bytes(16, 13),
		epoch: 7,
		build: "kvasir 0.1.0",
		engine: { class: "canonical-1", device: "cpu", memoryBytes: 2 ** 34, threads: 8, selfCheck: bytes(32, 14) },
		offer: { memoryBytes: 2 ** 33, rowsMax: 64, dispatchesMax: 4, inFlightBytesMax: 2 ** 24 },
		holds: [{ modelId: bytes(32, 2), layer: 3, first: 0, count: 128 }],
		payout: { wallet: bytes(32, 15), signature: bytes(64, 16) },
	},
	{
		kind: "challenge",
		version: 1,
		key: bytes(32, 20),
		nonce: bytes(32, 21),
		ephemeral: bytes(32, 22),
		serverTimeMs: 1_800_000_000_000,
	},
	{ kind: "auth", signature: bytes(64, 30) },
	{ kind: "welcome", body: bytes(40, 31), signature: bytes(64, 32) },
];

/** One message of every kind after welcome, and of every form of it. */
export const sampleSessions: readonly Exclude<SessionMessage, { kind: "unknown" }>[] = [
	{
		kind: "assign",
		wanted: [{ layer: 0, first: 0, count: 256 }],
		manifestDigest: bytes(32, 40),
		slicePath: "/v1/slices/",
	},
	{ kind: "holding", ready: [{ layer: 0, first: 0, count: 200 }] },
	{
		kind: "dispatch",
		id: 2 ** 40,
		layer: 2,
		deadlineMs: 250,
		mode: 0,
		dtype: "f32",
		rowCount: 2,
		rowIndex: new Uint16Array([0, 0, 1]),
		expert: new Uint16Array([5, 1, 300]),
		weight: new Float32Array(0),
		rows: bytes(tensorBytes("f32", 2, sampleHidden), 50),
	},
	{
		kind: "dispatch",
		id: 2,
		layer: 2,
		deadlineMs: 250,
		mode: 1,
		dtype: "q14",
		rowCount: 1,
		rowIndex: new Uint16Array([0, 0]),
		expert: new Uint16Array([5, 1]),
		weight: new Float32Array([0.75, 0.25]),
		rows: bytes(tensorBytes("q14", 1, sampleHidden), 60),
	},
	{
		kind: "partials",
		id: 2 ** 40,
		computeUs: 1234,
		dtype: "f32",
		vectors: bytes(tensorBytes("f32", 3, sampleHidden), 70),
	},
	{ kind: "refuse", id: 5, code: "not_holding", text: "layer 2 expert 300" },
	{ kind: "refuse", id: null, code: "stale_epoch", text: "8" },
	{ kind: "cancel", id: 5 },
	{ kind: "ping", sequence: 1, senderTimeUs: 5_000_000_000 },
	{ kind: "pong", sequence: 1, senderTimeUs: 5_000_000_000 },
	{ kind: "receipt", body: bytes(100, 80), signature: bytes(64, 81) },
	{ kind: "countersign", number: 3, answer: { signature: bytes(64, 82) } },
	{ kind: "countersign", number: 3, answer: { pairs: 12, digest: bytes(32, 83) } },
	{ kind: "drain", reason: "signal", graceMs: 30_000 },
	{ kind: "bye", code: "key_in_use", text: "another instance serves under this key", retryAfterMs: 300_000 },
];
