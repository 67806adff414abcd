import { open } from "node:fs/promises";
import { type TensorType, tensorTypes } from "../../src/model/weight-matrix.ts";

/** A metadata value with its GGUF type. Strings, booleans, whole numbers (u32) and arrays of them need no type: see `typed()`. */
export type Typed =
	| { readonly type: "u32" | "i32" | "u64" | "f32"; readonly value: number }
	| { readonly type: "bool"; readonly value: boolean }
	| { readonly type: "string"; readonly value: string }
	| { readonly type: "array"; readonly of: Typed["type"]; readonly value: readonly unknown[] };

/** A tensor to write; `bytes` may be made when its turn comes, so that a large file never is in memory whole. */
export interface TensorToWrite {
	readonly name: string;
	/** A type Kvasir knows, or any ggml number. */
	readonly type: TensorType | number;
	/** ggml's order: the contiguous dimension first. */
	readonly ne: readonly number[];
	readonly bytes: Uint8Array | (() => Uint8Array);
	/** Needed when `bytes` is a function. */
	readonly byteLength?: number;
}

export interface WriteOptions {
	readonly version?: number;
	readonly alignment?: number;
	/** How many tensors each part holds, in order (the first may hold 0; the last takes the rest); one file without it. */
	readonly splits?: readonly number[];
}

const typeIds = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9, u64: 10 } as const;

/** Guesses the GGUF type of a plain value; f32 where a number is not whole. */
export function typed(value: unknown): Typed {
	if (typeof value === "string") return { type: "string", value };
	if (typeof value === "boolean") return { type: "bool", value };
	if (typeof value === "number") return { type: Number.isInteger(value) && value >= 0 ? "u32" : "f32", value };
	if (Array.isArray(value)) {
		const negative = value.some((item) => typeof item === "number" && item < 0);
		return { type: "array", of: negative ? "i32" : typed(value[0] ?? 0).type, value };
	}
	return value as Typed;
}

/**
 * Writes a GGUF model, and returns the paths of its files: `path` itself, or with `splits` its parts
 * `...-00001-of-0000N.gguf` (path must end with .gguf).
 */
export async function writeGguf(
	path: string,
	metadata: ReadonlyMap<string, unknown>,
	tensors: readonly TensorToWrite[],
	options: WriteOptions = {},
): Promise<string[]> {
	const { splits } = options;
	if (splits === undefined) {
		await writeFile(path, metadata, tensors, options);
		return [path];
	}
	const paths: string[] = [];
	let next = 0;
	for (const [index, count] of splits.entries()) {
		const part = `${path.slice(0, -".gguf".length)}-${pad(index + 1)}-of-${pad(splits.length)}.gguf`;
		const own = new Map<string, unknown>(index === 0 ? metadata : []);
		own.set("split.no", index).set("split.count", splits.length);
		own.set("split.tensors.count", { type: "i32", value: tensors.length });
		if (options.alignment !== undefined) own.set("general.alignment", options.alignment);
		await writeFile(part, own, tensors.slice(next, index === splits.length - 1 ? undefined : next + count), options);
		next += count;
		paths.push(part);
	}
	return paths;
}

async function writeFile(
	path: string,
	metadata: ReadonlyMap<string, unknown>,
	tensors: readonly TensorToWrite[],
	{ version = 3, alignment = 32 }: WriteOptions,
): Promise<void> {
	const values = new Map(metadata);
	if (alignment !== 32) values.set("general.alignment", alignment);
	const header: Buffer[] = [Buffer.from("GGUF"), u32(version), u64(tensors.length), u64(values.size)];
	for (const [key, value] of values) header.push(text(key), metadataValue(typed(value)));
	let offset = 0;
	for (const tensor of tensors) {
		const type = typeof tensor.type === "number" ? tensor.type : tensorTypes[tensor.type];
		header.push(text(tensor.name), u32(tensor.ne.length), ...tensor.ne.map(u64), u32(type), u64(offset));
		offset += alignUp(lengthOf(tensor), alignment);
	}
	const file = await open(path, "w");
	try {
		await writePadded(file, Buffer.concat(header), alignment);
		for (const { bytes } of tensors) await writePadded(file, typeof bytes === "function" ? bytes() : bytes, alignment);
	} finally {
		await file.close();
	}
}

async function writePadded(
	file: Awaited<ReturnType<typeof open>>,
	bytes: Uint8Array,
	alignment: number,
): Promise<void> {
	await file.writeFile(bytes);
	await file.writeFile(new Uint8Array(alignUp(bytes.length, alignment) - bytes.length));
}

function lengthOf({ bytes, byteLength, name }: TensorToWrite): number {
	if (typeof bytes !== "function") return bytes.length;
	if (byteLength === undefined) throw new Error(`tensor ${name} needs its byteLength`);
	return byteLength;
}

function metadataValue(value: Typed): Buffer {
	return Buffer.concat([u32(typeIds[value.type]), payload(value)]);
}

function payload(value: Typed): Buffer {
	switch (value.type) {
		case "string":
			return text(value.value);
		case "bool":
			return Buffer.from([value.value ? 1 : 0]);
		case "u64":
			return u64(value.value);
		case "array": {
			const items = value.value.map((item) => payload({ type: value.of, value: item } as Typed));
			return Buffer.concat([u32(typeIds[value.of]), u64(value.value.length), ...items]);
		}
		default: {
			const bytes = Buffer.alloc(4);
			if (value.type === "u32") bytes.writeUInt32LE(value.value);
			else if (value.type === "i32") bytes.writeInt32LE(value.value);
			else bytes.writeFloatLE(value.value);
			return bytes;
		}
	}
}

function text(value: string): Buffer {
	const bytes = Buffer.from(value);
	return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Buffer {
	const bytes = Buffer.alloc(4);
	bytes.writeUInt32LE(value);
	return bytes;
}

function u64(value: number): Buffer {
	const bytes = Buffer.alloc(8);
	bytes.writeBigUInt64LE(BigInt(value));
	return bytes;
}

function alignUp(value: number, alignment: number): number {
	return Math.ceil(value / alignment) * alignment;
}

function pad(value: number): string {
	return String(value).padStart(5, "0");
}
