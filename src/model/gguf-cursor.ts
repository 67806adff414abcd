import { ggufLimits } from "./gguf-limits.ts";

/** What a reader expected at a byte of the file, and what was there instead. Turned into a KvasirError where the path is known. */
export class GgufFormatError extends Error {
	readonly offset: number;

	constructor(offset: number, message: string) {
		super(message);
		this.name = "GgufFormatError";
		this.offset = offset;
	}
}

/** The header goes on behind the bytes read so far: read more of the file and start again. */
export class WindowTooSmall extends Error {
	readonly neededBytes: number;

	constructor(neededBytes: number) {
		super(`the header needs at least ${neededBytes} bytes`);
		this.name = "WindowTooSmall";
		this.neededBytes = neededBytes;
	}
}

/** Reads little-endian values one after another from the first bytes of a file of `fileBytes` bytes, never behind either end. */
export class GgufCursor {
	offset = 0;
	/** Array elements read so far. */
	elements = 0;
	readonly fileBytes: number;
	readonly #bytes: Buffer;
	readonly #view: DataView;

	constructor(window: Uint8Array, fileBytes: number) {
		this.#bytes = Buffer.from(window.buffer, window.byteOffset, window.byteLength);
		this.#view = new DataView(window.buffer, window.byteOffset, window.byteLength);
		this.fileBytes = fileBytes;
	}

	u8(what: string): number {
		return this.#view.getUint8(this.#take(1, what));
	}

	i8(what: string): number {
		return this.#view.getInt8(this.#take(1, what));
	}

	u16(what: string): number {
		return this.#view.getUint16(this.#take(2, what), true);
	}

	i16(what: string): number {
		return this.#view.getInt16(this.#take(2, what), true);
	}

	u32(what: string): number {
		return this.#view.getUint32(this.#take(4, what), true);
	}

	i32(what: string): number {
		return this.#view.getInt32(this.#take(4, what), true);
	}

	u64(what: string): bigint {
		return this.#view.getBigUint64(this.#take(8, what), true);
	}

	i64(what: string): bigint {
		return this.#view.getBigInt64(this.#take(8, what), true);
	}

	f32(what: string): number {
		return this.#view.getFloat32(this.#take(4, what), true);
	}

	f64(what: string): number {
		return this.#view.getFloat64(this.#take(8, what), true);
	}

	bool(what: string): boolean {
		const at = this.offset;
		const value = this.u8(what);
		if (value > 1) throw new GgufFormatError(at, `expected 0 or 1 for ${what}, found ${value}`);
		return value === 1;
	}

	/** A 64-bit number that must not exceed `limit` (itself a safe integer). */
	count(what: string, limit: number): number {
		const at = this.#take(8, what);
		// Two halves: a bigint for each of half a million strings would cost more than the rest of the header.
		const value = this.#view.getUint32(at, true) + 2 ** 32 * this.#view.getUint32(at + 4, true);
		if (value <= limit) return value;
		throw new GgufFormatError(at, `expected ${what} of at most ${limit}, found ${this.#view.getBigUint64(at, true)}`);
	}

	/** A 64-bit length and as many bytes of UTF-8. */
	string(what: string, limitBytes: number): string {
		const length = this.count(what, limitBytes);
		const start = this.#take(length, what);
		return this.#bytes.toString("utf8", start, start + length);
	}

	/** Refuses a count of things that take at least `leastBytes` each when the file is too short for them. */
	reserve(count: number, leastBytes: number, what: string): void {
		const left = this.fileBytes - this.offset;
		if (count * leastBytes > left) {
			throw new GgufFormatError(this.offset, `expected ${what}, found only ${left} bytes before the end of the file`);
		}
	}

	#take(length: number, what: string): number {
		const start = this.offset;
		const end = start + length;
		if (end > this.fileBytes) {
			throw new GgufFormatError(start, `expected ${what} (${length} bytes), found the end of the file`);
		}
		if (end > ggufLimits.headerBytes) {
			throw new GgufFormatError(start, `expected a header of at most ${ggufLimits.headerBytes} bytes`);
		}
		if (end > this.#bytes.length) throw new WindowTooSmall(end);
		this.offset = end;
		return start;
	}
}
