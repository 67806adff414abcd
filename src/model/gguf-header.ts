import { blockFormatOf, typeNameOf } from "./ggml-types.ts";
import { type GgufCursor, GgufFormatError } from "./gguf-cursor.ts";
import { ggufLimits } from "./gguf-limits.ts";
import { readValue } from "./gguf-value.ts";

/** A tensor as the header lists it. */
export interface TensorInfo {
	readonly name: string;
	/** The ggml type number; `ggml-types.ts` knows its name and blocks. */
	readonly ggmlType: number;
	/** ggml's `ne`: the contiguous dimension first. */
	readonly ne: readonly number[];
	/** Of the first weight, from the start of its file. */
	readonly offset: number;
	/** 0 for a type whose size is unknown. */
	readonly bytes: number;
	readonly shard: number;
}

/** One file's header. */
export interface GgufHeader {
	readonly version: number;
	readonly metadata: ReadonlyMap<string, unknown>;
	readonly tensors: readonly TensorInfo[];
	readonly alignment: number;
	/** Where tensor data starts: the header is the bytes before. */
	readonly dataOffset: number;
}

/** Reads a GGUF header, version 2 or 3. Throws GgufFormatError, or WindowTooSmall when it needs more of the file. */
export function readHeader(cursor: GgufCursor, shard: number): GgufHeader {
	const version = readMagic(cursor);
	const tensorCount = cursor.count("a number of tensors", ggufLimits.tensors);
	const keyCount = cursor.count("a number of metadata keys", ggufLimits.metadataKeys);
	const metadata = readMetadata(cursor, keyCount);
	const alignment = alignmentOf(metadata, cursor.offset);
	const declared = readTensorInfos(cursor, tensorCount);
	const dataOffset = alignUp(cursor.offset, alignment);
	const tensors = declared.map((tensor) => placeTensor(tensor, { dataOffset, alignment, shard, cursor }));
	refuseOverlaps(tensors);
	return { version, metadata, tensors, alignment, dataOffset };
}

function readMagic(cursor: GgufCursor): number {
	const magic = cursor.u32("the letters GGUF");
	if (magic !== 0x46554747) throw new GgufFormatError(0, "expected the letters GGUF: this is not a GGUF file");
	const version = cursor.u32("a GGUF version");
	if (version === 2 || version === 3) return version;
	if (version !== 0 && (version & 0xffff) === 0) {
		throw new GgufFormatError(4, "expected a little-endian version, found a big-endian file");
	}
	throw new GgufFormatError(4, `expected GGUF version 2 or 3, found ${version}`);
}

function readMetadata(cursor: GgufCursor, count: number): Map<string, unknown> {
	const metadata = new Map<string, unknown>();
	cursor.reserve(count, 13, `${count} metadata keys`);
	for (let i = 0; i < count; i++) {
		const at = cursor.offset;
		const key = cursor.string("a metadata key", ggufLimits.keyBytes);
		if (metadata.has(key)) throw new GgufFormatError(at, `expected a new metadata key, found ${quote(key)} again`);
		metadata.set(key, readValue(cursor, quote(key)));
	}
	return metadata;
}

function alignmentOf(metadata: ReadonlyMap<string, unknown>, offset: number): number {
	const value = metadata.get("general.alignment") ?? 32;
	const fits = typeof value === "number" && value >= 1 && value <= ggufLimits.alignmentBytes;
	if (fits && (value & (value - 1)) === 0) return value;
	throw new GgufFormatError(offset, `expected a power of two for "general.alignment", found ${String(value)}`);
}

interface DeclaredTensor {
	readonly name: string;
	readonly ggmlType: number;
	readonly ne: readonly number[];
	readonly relativeOffset: number;
	/** Where the header says so, for messages. */
	readonly declaredAt: number;
}

function readTensorInfos(cursor: GgufCursor, count: number): DeclaredTensor[] {
	const tensors: DeclaredTensor[] = [];
	const names = new Set<string>();
	cursor.reserve(count, 32, `${count} tensor entries`);
	for (let i = 0; i < count; i++) {
		const declaredAt = cursor.offset;
		const name = cursor.string("a tensor's name", ggufLimits.tensorNameBytes);
		if (names.has(name)) throw new GgufFormatError(declaredAt, `expected a new tensor, found ${quote(name)} again`);
		names.add(name);
		const ne = readDimensions(cursor, name);
		const ggmlType = cursor.u32(`the type of ${quote(name)}`);
		const relativeOffset = cursor.count(`an offset of ${quote(name)}`, Number.MAX_SAFE_INTEGER);
		tensors.push({ name, ggmlType, ne, relativeOffset, declaredAt });
	}
	return tensors;
}

function readDimensions(cursor: GgufCursor, name: string): number[] {
	const at = cursor.offset;
	const rank = cursor.u32(`the rank of ${quote(name)}`);
	if (rank < 1 || rank > ggufLimits.dimensions) {
		throw new GgufFormatError(at, `expected 1 to ${ggufLimits.dimensions} dimensions of ${quote(name)}, found ${rank}`);
	}
	const ne: number[] = [];
	let elements = 1;
	for (let i = 0; i < rank; i++) {
		const dimension = cursor.count(`a dimension of ${quote(name)}`, Number.MAX_SAFE_INTEGER);
		ne.push(dimension);
		elements *= dimension;
	}
	if (elements < 1 || elements > Number.MAX_SAFE_INTEGER) {
		throw new GgufFormatError(at, `expected a usable size of ${quote(name)}, found ${ne.join(" x ")}`);
	}
	return ne;
}

function placeTensor(
	tensor: DeclaredTensor,
	place: { dataOffset: number; alignment: number; shard: number; cursor: GgufCursor },
): TensorInfo {
	const { name, ggmlType, ne, relativeOffset, declaredAt } = tensor;
	const format = blockFormatOf(ggmlType);
	if (format !== undefined && ne[0]! % format.elements !== 0) {
		const state = `expected rows of ${quote(name)} in blocks of ${format.elements} (${typeNameOf(ggmlType)}), found ${ne[0]}`;
		throw new GgufFormatError(declaredAt, state);
	}
	if (relativeOffset % place.alignment !== 0) {
		const state = `expected an offset of ${quote(name)} aligned to ${place.alignment}, found ${relativeOffset}`;
		throw new GgufFormatError(declaredAt, state);
	}
	const elements = ne.reduce((product, dimension) => product * dimension, 1);
	const bytes = format === undefined ? 0 : (elements / format.elements) * format.bytes;
	const offset = place.dataOffset + relativeOffset;
	if (offset + bytes > place.cursor.fileBytes) {
		const state = `expected ${bytes} bytes of ${quote(name)}, found the end of the file at ${place.cursor.fileBytes}`;
		throw new GgufFormatError(offset, state);
	}
	return { name, ggmlType, ne, offset, bytes, shard: place.shard };
}

function refuseOverlaps(tensors: readonly TensorInfo[]): void {
	const byOffset = [...tensors].sort((a, b) => a.offset - b.offset);
	for (let i = 1; i < byOffset.length; i++) {
		const before = byOffset[i - 1]!;
		const after = byOffset[i]!;
		if (before.offset + before.bytes > after.offset) {
			const state = `expected the end of ${quote(before.name)}, found ${quote(after.name)} begun inside it`;
			throw new GgufFormatError(after.offset, state);
		}
	}
}

function alignUp(offset: number, alignment: number): number {
	return Math.ceil(offset / alignment) * alignment;
}

/** A name from a file, short enough for a message. */
function quote(name: string): string {
	return JSON.stringify(name.length > 80 ? `${name.slice(0, 77)}...` : name);
}
