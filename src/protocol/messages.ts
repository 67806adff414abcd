// The messages of wire.md section 2, as values. codec.ts turns them into msgpack arrays `[kind, ...fields]` and back.

export const protocolVersion = 1;
export const subprotocol = "kvasir.v1";

/** Kind numbers on the wire. */
export const messageKinds = {
	hello: 0,
	challenge: 1,
	auth: 2,
	welcome: 3,
	assign: 4,
	holding: 5,
	dispatch: 6,
	partials: 7,
	refuse: 8,
	cancel: 9,
	ping: 10,
	pong: 11,
	receipt: 12,
	countersign: 13,
	drain: 14,
	bye: 15,
} as const;

/** How rows or vectors are laid out in a tensor. f16 belongs to tolerance classes only; q14 is numerics.md's activation blocks. */
export const dtypes = { f32: 0, f16: 1, q14: 2 } as const;
export type Dtype = keyof typeof dtypes;

/** A run of experts of one layer: `[layer, first, count]`. */
export interface ExpertRange {
	readonly layer: number;
	readonly first: number;
	readonly count: number;
}

export interface EngineFacts {
	readonly class: string;
	readonly device: string;
	readonly memoryBytes: number;
	readonly threads: number;
	/** SHA-256 of the self-check's outputs; empty where the class has none. */
	readonly selfCheck: Uint8Array;
}

export interface Offer {
	readonly memoryBytes: number;
	readonly rowsMax: number;
	readonly dispatchesMax: number;
	readonly inFlightBytesMax: number;
}

/** Where the worker wants its pay: a wallet key, bound by the node key's signature over `"kvasir/1 payout" || wallet` (64 bytes). */
export interface Payout {
	readonly wallet: Uint8Array;
	readonly signature: Uint8Array;
}

export interface Hello {
	readonly kind: "hello";
	readonly version: number;
	readonly key: Uint8Array;
	readonly nonce: Uint8Array;
	readonly ephemeral: Uint8Array;
	readonly instance: Uint8Array;
	readonly epoch: number;
	readonly build: string;
	readonly engine: EngineFacts;
	readonly offer: Offer;
	readonly holds: readonly (ExpertRange & { readonly modelId: Uint8Array })[];
	readonly payout: Payout;
}
export interface Challenge {
	readonly kind: "challenge";
	readonly version: number;
	readonly key: Uint8Array;
	readonly nonce: Uint8Array;
	readonly ephemeral: Uint8Array;
	readonly serverTimeMs: number;
}
export interface Auth {
	readonly kind: "auth";
	readonly signature: Uint8Array;
}
export interface Welcome {
	readonly kind: "welcome";
	/** msgpack of WelcomeBody; hashed as these bytes. */
	readonly body: Uint8Array;
	readonly signature: Uint8Array;
}
export interface ModelFacts {
	readonly modelId: Uint8Array;
	readonly name: string;
	readonly layers: number;
	readonly experts: number;
	readonly topK: number;
	readonly hidden: number;
	readonly expertWidth: number;
}
export interface WelcomeBody {
	readonly session: Uint8Array;
	readonly heartbeatMs: number;
	readonly deadMs: number;
	readonly limits: Offer;
	readonly model: ModelFacts;
	readonly backbones: readonly Uint8Array[];
}
export interface Assign {
	readonly kind: "assign";
	readonly wanted: readonly ExpertRange[];
	readonly manifestDigest: Uint8Array;
	readonly slicePath: string;
}
export interface Holding {
	readonly kind: "holding";
	readonly ready: readonly ExpertRange[];
}
export interface Dispatch {
	readonly kind: "dispatch";
	readonly id: number;
	readonly layer: number;
	readonly deadlineMs: number;
	/** 0: one vector per pair; 1: whole rows, summed by the worker. */
	readonly mode: 0 | 1;
	readonly dtype: Dtype;
	readonly rowCount: number;
	readonly rowIndex: Uint16Array;
	readonly expert: Uint16Array;
	/** Empty in mode 0. */
	readonly weight: Float32Array;
	/** The tensor's bytes, little-endian, as they lie in the message: never viewed as floats in place. */
	readonly rows: Uint8Array;
}
export interface Partials {
	readonly kind: "partials";
	readonly id: number;
	readonly computeUs: number;
	readonly dtype: Dtype;
	readonly vectors: Uint8Array;
}
export const refuseCodes = [
	"unknown_kind",
	"malformed",
	"bounds",
	"not_holding",
	"overloaded",
	"deadline",
	"non_finite_row",
	"non_finite_result",
	"engine_failed",
	"cancelled",
	"draining",
	"model_mismatch",
	"stale_epoch",
] as const;
export type RefuseCode = (typeof refuseCodes)[number];
export interface Refuse {
	readonly kind: "refuse";
	/** null: not about one dispatch. */
	readonly id: number | null;
	/** A RefuseCode, or a code of a newer peer. */
	readonly code: string;
	readonly text: string;
}
export interface Cancel {
	readonly kind: "cancel";
	readonly id: number;
}
export interface Ping {
	readonly kind: "ping" | "pong";
	readonly sequence: number;
	readonly senderTimeUs: number;
}
export interface ReceiptMessage {
	readonly kind: "receipt";
	readonly body: Uint8Array;
	readonly signature: Uint8Array;
}
export interface Countersign {
	readonly kind: "countersign";
	readonly number: number;
	/** The worker agrees: its signature. It does not: its own figures. */
	readonly answer: { readonly signature: Uint8Array } | { readonly pairs: number; readonly digest: Uint8Array };
}
export interface Drain {
	readonly kind: "drain";
	readonly reason: string;
	readonly graceMs: number;
}
export interface Bye {
	readonly kind: "bye";
	readonly code: string;
	readonly text: string;
	/** 0: do not come back. */
	readonly retryAfterMs: number;
}
/** A message of a kind this version does not know. */
export interface Unknown {
	readonly kind: "unknown";
	readonly number: number;
}
export type HandshakeMessage = Hello | Challenge | Auth | Welcome;
export type SessionMessage =
	| Assign
	| Holding
	| Dispatch
	| Partials
	| Refuse
	| Cancel
	| Ping
	| ReceiptMessage
	| Countersign
	| Drain
	| Bye
	| Unknown;

/** Close codes of the WebSocket (wire.md section 3). */
export const closeCodes = {
	normal: 1000,
	goingAway: 1001,
	/** Never sent: how a connection that just went away is reported. */
	lost: 1006,
	text: 1003,
	tooBig: 1009,
	malformed: 4400,
	auth: 4401,
	handshakeTimeout: 4408,
	takenOver: 4409,
	version: 4426,
	deadPeer: 4504,
} as const;
