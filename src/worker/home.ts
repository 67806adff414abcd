import { join } from "node:path";
import { KvasirError } from "../errors.ts";
import { addressOf, keyOf } from "../io/base58.ts";
import { makePrivateFolder, readSmallFile, writePrivateFile } from "../io/files.ts";
import type { Random } from "../io/random.ts";

/** What a worker remembers between runs. */
export interface WorkerHome {
	/** 16 random bytes, made once: tells a restarted worker from another one with the same key. */
	readonly instance: Uint8Array;
	/** The next epoch, stored before it is used; at least `atLeast`. */
	nextEpoch(atLeast?: number): Promise<number>;
	/** The backbone key first seen at a gateway; null before. */
	backboneOf(gateway: string): Promise<Uint8Array | null>;
	rememberBackbone(gateway: string, key: Uint8Array): Promise<void>;
}

/** A receipt as it was exchanged. */
export interface SignedReceipt {
	readonly body: Uint8Array;
	readonly signature: Uint8Array;
	/** Null where the worker's own figures differ. */
	readonly countersignature: Uint8Array | null;
}

/** The file's contents; unknown fields are kept. */
interface State {
	instance: string;
	epoch: number;
	/** Base58 backbone key by gateway host. */
	backbones: Record<string, string>;
}

const stateBytesMax = 256 * 1024;

/** A home in a folder: `worker.json`, written whole and atomically. Throws `bad_file`. */
export async function openWorkerHome(home: string, random: Random): Promise<WorkerHome> {
	await makePrivateFolder(home);
	const path = join(home, "worker.json");
	const state = await readState(path);
	if (!/^[0-9a-f]{32}$/.test(state.instance)) state.instance = Buffer.from(random.bytes(16)).toString("hex");
	let writing: Promise<void> = Promise.resolve();

	/** One write at a time, each of the newest state. */
	function save(): Promise<void> {
		writing = writing.catch(() => {}).then(() => writePrivateFile(path, `${JSON.stringify(state, null, "\t")}\n`));
		return writing;
	}

	await save();
	return {
		instance: Buffer.from(state.instance, "hex"),
		async nextEpoch(atLeast = 0) {
			const epoch = Math.max(state.epoch + 1, atLeast);
			state.epoch = epoch;
			await save();
			return epoch;
		},
		async backboneOf(gateway) {
			const address = Object.hasOwn(state.backbones, gateway) ? state.backbones[gateway] : undefined;
			return address === undefined ? null : keyOf(address);
		},
		async rememberBackbone(gateway, key) {
			state.backbones[gateway] = addressOf(key);
			await save();
		},
	};
}

async function readState(path: string): Promise<State> {
	const bytes = await readSmallFile(path, stateBytesMax);
	if (bytes === null) return { instance: "", epoch: 0, backbones: {} };
	try {
		const { instance = "", epoch = 0, backbones = {}, ...rest } = JSON.parse(bytes.toString("utf8")) as Partial<State>;
		if (
			typeof instance === "string" &&
			Number.isSafeInteger(epoch) &&
			typeof backbones === "object" &&
			backbones !== null
		) {
			return { ...rest, instance, epoch, backbones };
		}
	} catch {
		// The same refusal.
	}
	throw new KvasirError("bad_file", `Cannot read ${path}: not what a worker wrote`, {
		hint: "Move it away; the worker then counts as a new instance",
	});
}
