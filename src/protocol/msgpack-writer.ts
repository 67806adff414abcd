import { limits } from "./limits.ts";
import { outOfBounds } from "./wire-error.ts";

/** Writes the subset of msgpack that the wire uses: nil, integers from 0 to 2^53 - 1, text, bin, arrays. Shortest forms only. */
export class MsgpackWriter {
	#buffer = Buffer.allocUnsafe(512);
	#length = 0;

	/** What was written: a view, valid while nothing more is written. */
	get bytes(): Uint8Array {
		return this.#buffer.subarray(0, this.#length);
	}

	nil(): this {
		this.#room(1);
		this.#byte(0xc0);
		return this;
	}

	array(count: number): this {
		if (count < 16) {
			this.#room(1);
			this.#byte(0x90 | count);
		} else this.#header(count, 0, 0xdc, 0xdd);
		return this;
	}

	/** Throws `bounds` for what is not an integer from 0 to 2^53 - 1. */
	uint(value: number): this {
		if (!Number.isSafeInteger(value) || value < 0) throw outOfBounds("integer", `${value} is not from 0 to 2^53 - 1`);
		this.#room(9);
		if (value < 0x80) this.#byte(value);
		else if (value < 0x1_0000_0000) this.#header(value, 0xcc, 0xcd, 0xce);
		else {
			this.#byte(0xcf);
			this.#buffer.writeBigUInt64BE(BigInt(value), this.#length);
			this.#length += 8;
		}
		return this;
	}

	/** Text, cut to `limits.textBytes` at a character. */
	text(value: string): this {
		const bytes = clipText(value);
		if (bytes.length < 32) {
			this.#room(1);
			this.#byte(0xa0 | bytes.length);
		} else this.#header(bytes.length, 0xd9, 0xda, 0xdb);
		return this.#append(bytes);
	}

	bin(value: Uint8Array): this {
		return this.binHeader(value.length).#append(value);
	}

	/** The header of a bin whose bytes the caller sends itself. */
	binHeader(length: number): this {
		this.#header(length, 0xc4, 0xc5, 0xc6);
		return this;
	}

	/** A marker and a count in the shortest of 1, 2 or 4 bytes; a marker of 0 means that form does not exist. */
	#header(count: number, marker8: number, marker16: number, marker32: number): void {
		this.#room(5);
		if (marker8 !== 0 && count < 0x100) {
			this.#byte(marker8);
			this.#byte(count);
		} else if (count < 0x1_0000) {
			this.#byte(marker16);
			this.#length = this.#buffer.writeUInt16BE(count, this.#length);
		} else {
			this.#byte(marker32);
			this.#length = this.#buffer.writeUInt32BE(count, this.#length);
		}
	}

	#append(bytes: Uint8Array): this {
		this.#room(bytes.length);
		this.#buffer.set(bytes, this.#length);
		this.#length += bytes.length;
		return this;
	}

	#byte(value: number): void {
		this.#buffer[this.#length++] = value;
	}

	#room(bytes: number): void {
		const needed = this.#length + bytes;
		if (needed <= this.#buffer.length) return;
		const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
		grown.set(this.bytes);
		this.#buffer = grown;
	}
}

/** UTF-8 of at most `limits.textBytes`, never half a character. */
function clipText(value: string): Uint8Array {
	const bytes = Buffer.from(value.length > limits.textBytes ? value.slice(0, limits.textBytes) : value, "utf8");
	if (bytes.length <= limits.textBytes) return bytes;
	let end: number = limits.textBytes;
	while ((bytes[end]! & 0xc0) === 0x80) end--;
	return bytes.subarray(0, end);
}
