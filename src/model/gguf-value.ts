import { type GgufCursor, GgufFormatError } from "./gguf-cursor.ts";
import { ggufLimits } from "./gguf-limits.ts";

/** How one scalar type of GGUF is read, and the least bytes it takes. */
interface ValueType {
	readonly leastBytes: number;
	read(cursor: GgufCursor, what: string): unknown;
}

const stringType = 8;
const arrayType = 9;

const scalars: ReadonlyMap<number, ValueType> = new Map([
	[0, { leastBytes: 1, read: (cursor, what) => cursor.u8(what) }],
	[1, { leastBytes: 1, read: (cursor, what) => cursor.i8(what) }],
	[2, { leastBytes: 2, read: (cursor, what) => cursor.u16(what) }],
	[3, { leastBytes: 2, read: (cursor, what) => cursor.i16(what) }],
	[4, { leastBytes: 4, read: (cursor, what) => cursor.u32(what) }],
	[5, { leastBytes: 4, read: (cursor, what) => cursor.i32(what) }],
	[6, { leastBytes: 4, read: (cursor, what) => cursor.f32(what) }],
	[7, { leastBytes: 1, read: (cursor, what) => cursor.bool(what) }],
	[stringType, { leastBytes: 8, read: (cursor, what) => cursor.string(what, ggufLimits.stringBytes) }],
	[10, { leastBytes: 8, read: (cursor, what) => numberOf(cursor.u64(what)) }],
	[11, { leastBytes: 8, read: (cursor, what) => numberOf(cursor.i64(what)) }],
	[12, { leastBytes: 8, read: (cursor, what) => cursor.f64(what) }],
] satisfies [number, ValueType][]);

/** A typed metadata value: number, bigint (only beyond 2^53), boolean, string, or an array of one of these. `key` is for messages. */
export function readValue(cursor: GgufCursor, key: string): unknown {
	const at = cursor.offset;
	const type = cursor.u32(`the type of ${key}`);
	return type === arrayType ? readArray(cursor, key, 1) : scalarOf(type, at, key).read(cursor, `the value of ${key}`);
}

function readArray(cursor: GgufCursor, key: string, depth: number): unknown[] {
	const at = cursor.offset;
	if (depth > ggufLimits.arrayDepth) {
		throw new GgufFormatError(at, `expected at most ${ggufLimits.arrayDepth} nested arrays in ${key}`);
	}
	const type = cursor.u32(`the element type of ${key}`);
	const element: ValueType =
		type === arrayType
			? { leastBytes: 12, read: (inner) => readArray(inner, key, depth + 1) }
			: scalarOf(type, at, key);
	const count = cursor.count(`a number of elements of ${key}`, ggufLimits.arrayElements - cursor.elements);
	cursor.elements += count;
	cursor.reserve(count, element.leastBytes, `${count} elements of ${key}`);
	const what = `an element of ${key}`;
	const values: unknown[] = [];
	for (let i = 0; i < count; i++) values.push(element.read(cursor, what));
	return values;
}

function scalarOf(type: number, at: number, key: string): ValueType {
	const scalar = scalars.get(type);
	if (scalar === undefined) throw new GgufFormatError(at, `expected a value type (0 to 12) of ${key}, found ${type}`);
	return scalar;
}

function numberOf(value: bigint): number | bigint {
	const number = Number(value);
	return Number.isSafeInteger(number) ? number : value;
}
