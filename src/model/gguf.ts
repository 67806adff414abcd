import { KvasirError } from "../errors.ts";
import { sha256 } from "../io/crypto.ts";
import type { TensorInfo } from "./gguf-header.ts";
import { type GgufShard, openShard } from "./gguf-shard.ts";
import { shardPathsOf } from "./gguf-split.ts";

/** A GGUF model on disk, in one file or several; only headers are in memory. */
export interface Gguf {
	/** The path that was asked for. */
	readonly path: string;
	readonly shards: readonly { readonly path: string; readonly fileBytes: number; readonly version: number }[];
	/** Of the first shard. */
	readonly metadata: ReadonlyMap<string, unknown>;
	readonly tensors: ReadonlyMap<string, TensorInfo>;
	/** SHA-256 over the header bytes (up to the data offset) of all shards in order. */
	readonly modelId: Uint8Array;
	/** `length` bytes of a tensor, from `start` bytes behind its beginning. */
	read(tensor: TensorInfo, start: number, length: number): Promise<Uint8Array>;
	close(): Promise<void>;
}

/** Opens a model by its path; any shard of a split model stands for the whole. Throws `file_missing`, `bad_file` or `bad_gguf`. */
export async function openGguf(path: string): Promise<Gguf> {
	const shards: GgufShard[] = [];
	const close = async () => {
		for (const shard of shards) await shard.close();
	};
	try {
		const first = await openShard(path, 0);
		shards.push(first);
		const paths = shardPathsOf(path, first.header.metadata);
		// The shard asked for need not be the first: then it is opened again in its place.
		if (paths[0] !== path) {
			shards.pop();
			await first.close();
		}
		for (const shardPath of paths.slice(shards.length)) shards.push(await openShard(shardPath, shards.length));
		checkSplit(shards);
		const tensors = mergeTensors(shards);
		const modelId = sha256(...shards.map((shard) => shard.headerBytes));
		return {
			path,
			shards: shards.map((shard) => ({
				path: shard.path,
				fileBytes: shard.fileBytes,
				version: shard.header.version,
			})),
			metadata: shards[0]!.header.metadata,
			tensors,
			modelId: new Uint8Array(modelId),
			read: (tensor, start, length) => readTensor(shards, tensor, start, length),
			close,
		};
	} catch (error) {
		await close();
		throw error;
	}
}

async function readTensor(shards: readonly GgufShard[], tensor: TensorInfo, start: number, length: number) {
	if (start < 0 || length < 0 || start + length > tensor.bytes) {
		const range = `bytes ${start} to ${start + length} of ${tensor.bytes}`;
		throw new KvasirError("internal", `Cannot read tensor ${tensor.name}: ${range}`);
	}
	return shards[tensor.shard]!.read(tensor.offset + start, length);
}

/** Every shard must say its own number, the same count, and together hold the promised tensors. */
function checkSplit(shards: readonly GgufShard[]): void {
	if (shards.length === 1) return;
	const promised = shards[0]!.header.metadata.get("split.tensors.count");
	for (const [index, { path, header }] of shards.entries()) {
		const number = header.metadata.get("split.no");
		const count = header.metadata.get("split.count");
		if (number !== index || count !== shards.length) {
			const found = `part ${String(number)} of ${String(count)}`;
			throw new KvasirError(
				"bad_gguf",
				`Cannot read ${path}: expected part ${index} of ${shards.length}, found ${found}`,
			);
		}
	}
	const found = shards.reduce((sum, shard) => sum + shard.header.tensors.length, 0);
	if (promised !== found) {
		const state = `expected ${String(promised)} tensors in ${shards.length} parts, found ${found}`;
		throw new KvasirError("bad_gguf", `Cannot read ${shards[0]!.path}: ${state}`);
	}
}

function mergeTensors(shards: readonly GgufShard[]): Map<string, TensorInfo> {
	const tensors = new Map<string, TensorInfo>();
	for (const { path, header } of shards) {
		for (const tensor of header.tensors) {
			if (tensors.has(tensor.name)) {
				throw new KvasirError("bad_gguf", `Cannot read ${path}: tensor ${tensor.name} is in another part too`);
			}
			tensors.set(tensor.name, tensor);
		}
	}
	return tensors;
}
