import { type Clock, systemClock } from "../../src/io/clock.ts";
import { type KeyPair, keyPairFromSeed } from "../../src/io/crypto.ts";
import { type Random, systemRandom } from "../../src/io/random.ts";
import { parseReceipt } from "../../src/ledger/receipt.ts";
import { countersignReceipt } from "../../src/ledger/receipt-signatures.ts";
import { dialHandshake } from "../../src/protocol/handshake.ts";
import type { Link, LinkEnd, Transport } from "../../src/protocol/link.ts";
import type { Dispatch, ExpertRange, Hello, SessionMessage, WelcomeBody } from "../../src/protocol/messages.ts";
import { bindPayout } from "../../src/protocol/payout.ts";

/** What a scripted worker says about itself; all optional. */
export interface Script {
	readonly seed?: number;
	readonly instance?: number;
	readonly epoch?: number;
	readonly holds?: readonly ExpertRange[];
	readonly modelId?: Uint8Array;
	readonly engineClass?: string;
	readonly offer?: Partial<Hello["offer"]>;
	readonly clock?: Clock;
	readonly random?: Random;
	/** What it does with each dispatch; default: answers with `expertVector`. */
	readonly onDispatch?: (dispatch: Dispatch, worker: ScriptedWorker) => void;
	readonly onOther?: (message: SessionMessage, worker: ScriptedWorker) => void;
}

/** Countersigns every receipt, for `onOther`. */
export function countersignAll(message: SessionMessage, worker: ScriptedWorker): void {
	if (message.kind !== "receipt") return;
	const { number } = parseReceipt(message.body);
	worker.link.send({
		kind: "countersign",
		number,
		answer: { signature: countersignReceipt(worker.identity, message.body) },
	});
}

/** A worker that speaks the real protocol and computes a made-up function of row and expert, or misbehaves as told. */
export interface ScriptedWorker {
	readonly identity: KeyPair;
	readonly link: Link;
	readonly welcome: WelcomeBody;
	readonly dispatches: Dispatch[];
	readonly others: SessionMessage[];
	/** Answers with the made-up function. */
	answer(dispatch: Dispatch): void;
	readonly ended: Promise<LinkEnd>;
}

export function scriptedIdentity(seed: number): KeyPair {
	return keyPairFromSeed(new Uint8Array(32).fill(seed));
}

/** Runs the worker's side of the handshake over `transport` and serves as scripted. */
export async function startScriptedWorker(transport: Transport, script: Script = {}): Promise<ScriptedWorker> {
	const identity = scriptedIdentity(script.seed ?? 1);
	const { link, welcome } = await dialHandshake(transport, {
		identity,
		clock: script.clock ?? systemClock,
		random: script.random ?? systemRandom,
		hello: {
			instance: new Uint8Array(16).fill(script.instance ?? 1),
			epoch: script.epoch ?? 1,
			build: "scripted",
			engine: {
				class: script.engineClass ?? "f32",
				device: "cpu",
				memoryBytes: 2 ** 30,
				threads: 1,
				selfCheck: new Uint8Array(0),
			},
			offer: { memoryBytes: 2 ** 30, rowsMax: 4096, dispatchesMax: 16, inFlightBytesMax: 2 ** 24, ...script.offer },
			holds: (script.holds ?? []).map((range) => ({ ...range, modelId: script.modelId ?? new Uint8Array(32) })),
			payout: bindPayout(identity, identity.publicKey),
		},
	});
	const worker: ScriptedWorker = {
		identity,
		link,
		welcome,
		dispatches: [],
		others: [],
		ended: link.ended,
		answer(dispatch) {
			const vectors = scriptedAnswer(dispatch, welcome.model.hidden);
			link.send({
				kind: "partials",
				id: dispatch.id,
				computeUs: 100,
				dtype: "f32",
				vectors: new Uint8Array(vectors.buffer),
			});
		},
	};
	link.onMessage = (message) => {
		if (message.kind !== "dispatch") {
			worker.others.push(message);
			script.onOther?.(message, worker);
			return;
		}
		worker.dispatches.push(message);
		if (script.onDispatch === undefined) worker.answer(message);
		else script.onDispatch(message, worker);
	};
	return worker;
}

/** The made-up expert: exact in binary32 for small integers. */
export function expertVector(layer: number, expert: number, row: Float32Array): Float32Array {
	return row.map((value) => value * (expert + 1) + layer);
}

/** What an honest scripted worker answers: vectors, or in mode 1 weighted sums. */
export function scriptedAnswer(dispatch: Dispatch, hidden: number): Float32Array {
	const rows = new Float32Array(new Uint8Array(dispatch.rows).buffer);
	const row = (index: number) => rows.subarray(index * hidden, (index + 1) * hidden);
	const count = dispatch.mode === 1 ? dispatch.rowCount : dispatch.expert.length;
	const out = new Float32Array(count * hidden);
	dispatch.expert.forEach((expert, pair) => {
		const rowIndex = dispatch.rowIndex[pair]!;
		const vector = expertVector(dispatch.layer, expert, row(rowIndex));
		const at = (dispatch.mode === 1 ? rowIndex : pair) * hidden;
		const weight = dispatch.mode === 1 ? dispatch.weight[pair]! : 1;
		vector.forEach((value, index) => {
			out[at + index]! += weight * value;
		});
	});
	return out;
}
