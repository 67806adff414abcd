import { limits } from "./limits.ts";
import type {
	Auth,
	Challenge,
	EngineFacts,
	ExpertRange,
	Hello,
	ModelFacts,
	Offer,
	Payout,
	Welcome,
	WelcomeBody,
} from "./messages.ts";
import { MsgpackReader } from "./msgpack-reader.ts";
import { MsgpackWriter } from "./msgpack-writer.ts";
import { outOfBounds } from "./wire-error.ts";

// hello, challenge, auth and welcome: the fields in order, after the kind.

export function writeHello(w: MsgpackWriter, hello: Hello): void {
	w.array(12).uint(0).uint(hello.version).bin(hello.key).bin(hello.nonce).bin(hello.ephemeral);
	w.bin(hello.instance).uint(hello.epoch).text(hello.build);
	const { engine } = hello;
	w.array(5).text(engine.class).text(engine.device).uint(engine.memoryBytes).uint(engine.threads).bin(engine.selfCheck);
	writeOffer(w, hello.offer);
	w.array(hello.holds.length);
	for (const { modelId, layer, first, count } of hello.holds)
		w.array(4).bin(modelId).uint(layer).uint(first).uint(count);
	w.array(2).bin(hello.payout.wallet).bin(hello.payout.signature);
}

/** Reads the fields of hello; `version` is first so that another version is recognised whatever follows it. */
export function readHello(r: MsgpackReader, version: number): Hello {
	return {
		kind: "hello",
		version,
		key: r.fixed("key", 32),
		nonce: r.fixed("nonce", 32),
		ephemeral: r.fixed("ephemeral", 32),
		instance: r.fixed("instance", 16),
		epoch: r.uint("epoch"),
		build: r.text("build"),
		engine: r.record("engine", 5, () => readEngine(r)),
		offer: readOffer(r, "offer"),
		holds: r.list("holds", limits.helloRanges, () =>
			r.record("holds", 4, () => ({ modelId: r.fixed("modelId", 32), ...readRange(r) })),
		),
		payout: r.record(
			"payout",
			2,
			(): Payout => ({ wallet: r.fixed("payout.wallet", 32), signature: r.fixed("payout.signature", 64) }),
		),
	};
}

export function writeChallenge(w: MsgpackWriter, challenge: Challenge): void {
	w.array(6).uint(1).uint(challenge.version).bin(challenge.key).bin(challenge.nonce);
	w.bin(challenge.ephemeral).uint(challenge.serverTimeMs);
}

export function readChallenge(r: MsgpackReader, version: number): Challenge {
	return {
		kind: "challenge",
		version,
		key: r.fixed("key", 32),
		nonce: r.fixed("nonce", 32),
		ephemeral: r.fixed("ephemeral", 32),
		serverTimeMs: r.uint("serverTimeMs"),
	};
}

export function writeAuth(w: MsgpackWriter, auth: Auth): void {
	w.array(2).uint(2).bin(auth.signature);
}

export function readAuth(r: MsgpackReader): Auth {
	return { kind: "auth", signature: r.fixed("signature", 64) };
}

export function writeWelcome(w: MsgpackWriter, welcome: Welcome): void {
	w.array(3).uint(3).bin(welcome.body).bin(welcome.signature);
}

export function readWelcome(r: MsgpackReader): Welcome {
	return {
		kind: "welcome",
		body: r.bin("body", limits.handshakeBytes),
		signature: r.fixed("signature", 64),
	};
}

/** The bytes inside welcome's bin: session, heartbeatMs, deadMs, limits, model, backbones. */
export function encodeWelcomeBody(body: WelcomeBody): Uint8Array {
	const w = new MsgpackWriter();
	w.array(6).bin(body.session).uint(body.heartbeatMs).uint(body.deadMs);
	writeOffer(w, body.limits);
	const { model } = body;
	w.array(7).bin(model.modelId).text(model.name).uint(model.layers).uint(model.experts).uint(model.topK);
	w.uint(model.hidden).uint(model.expertWidth);
	w.array(body.backbones.length);
	for (const key of body.backbones) w.bin(key);
	return w.bytes;
}

/** Throws `malformed` or `bounds`. */
export function decodeWelcomeBody(bytes: Uint8Array): WelcomeBody {
	const r = new MsgpackReader(bytes);
	const body = r.record(
		"body",
		6,
		(): WelcomeBody => ({
			session: r.fixed("session", 16),
			heartbeatMs: r.uint("heartbeatMs", limits.deadMsMax),
			deadMs: r.uint("deadMs", limits.deadMsMax),
			limits: readOffer(r, "limits"),
			model: r.record("model", 7, () => readModel(r)),
			backbones: r.list("backbones", limits.backbones, () => r.fixed("backbones", 32)),
		}),
	);
	r.end("body");
	if (body.heartbeatMs < limits.heartbeatMsMin || body.deadMs < body.heartbeatMs) {
		throw outOfBounds("heartbeatMs", `${body.heartbeatMs} with deadMs ${body.deadMs}`);
	}
	return body;
}

function readModel(r: MsgpackReader): ModelFacts {
	const model = {
		modelId: r.fixed("modelId", 32),
		name: r.text("name"),
		layers: r.uint("layers", limits.layers),
		experts: r.uint("experts", limits.experts),
		topK: r.uint("topK", limits.topK),
		hidden: r.uint("hidden", limits.hidden),
		expertWidth: r.uint("expertWidth", limits.hidden),
	};
	if (model.hidden === 0) throw outOfBounds("hidden", "0");
	return model;
}

function readEngine(r: MsgpackReader): EngineFacts {
	return {
		class: r.text("engine.class"),
		device: r.text("engine.device"),
		memoryBytes: r.uint("engine.memoryBytes"),
		threads: r.uint("engine.threads", limits.threads),
		selfCheck: r.bin("engine.selfCheck", 32),
	};
}

function writeOffer(w: MsgpackWriter, offer: Offer): void {
	w.array(4).uint(offer.memoryBytes).uint(offer.rowsMax).uint(offer.dispatchesMax).uint(offer.inFlightBytesMax);
}

function readOffer(r: MsgpackReader, field: string): Offer {
	return r.record(field, 4, () => ({
		memoryBytes: r.uint(`${field}.memoryBytes`),
		rowsMax: r.uint(`${field}.rowsMax`),
		dispatchesMax: r.uint(`${field}.dispatchesMax`),
		inFlightBytesMax: r.uint(`${field}.inFlightBytesMax`),
	}));
}

/** layer, first, count of an array already opened; first + count stays within the bound on experts. */
export function readRange(r: MsgpackReader): ExpertRange {
	const range = {
		layer: r.uint("layer", limits.layers - 1),
		first: r.uint("first", limits.experts - 1),
		count: r.uint("count", limits.experts),
	};
	if (range.first + range.count > limits.experts) throw outOfBounds("count", `${range.first} + ${range.count} experts`);
	return range;
}
