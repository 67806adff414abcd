import { limits } from "./limits.ts";
import { malformed, outOfBounds } from "./wire-error.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads the subset of msgpack that the wire uses, from bytes nobody vouches for. Every length is compared with the bytes left
 * and with a bound before anything is allocated; what is not used (extra elements of a newer peer) is skipped, whatever its type.
 * Throws `malformed` or `bounds`, naming the field.
 */
export class MsgpackReader {
	readonly #bytes: Uint8Array;
	readonly #view: DataView;
	#offset = 0;
	#depth = 0;

	constructor(bytes: Uint8Array) {
		this.#bytes = bytes;
		this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	}

	/** Reads an array of at least `fields` elements with `read`, and skips the rest. */
	record<T>(field: string, fields: number, read: () => T): T {
		const count = this.#open(field);
		if (count < fields) throw malformed(field, `${count} elements, not ${fields}`);
		const value = read();
		for (let extra = fields; extra < count; extra++) this.skip(field);
		this.#depth--;
		return value;
	}

	/** Like `record`, where `read` says itself how many of the `count` elements it took. */
	recordOf<T>(field: string, read: (count: number) => readonly [value: T, taken: number]): T {
		const count = this.#open(field);
		const [value, taken] = read(count);
		if (count < taken) throw malformed(field, `${count} elements, not ${taken}`);
		for (let extra = taken; extra < count; extra++) this.skip(field);
		this.#depth--;
		return value;
	}

	/** Reads an array of at most `max` items. */
	list<T>(field: string, max: number, readItem: () => T): T[] {
		const count = this.#open(field);
		if (count > max) throw outOfBounds(field, `${count} items, more than ${max}`);
		const items: T[] = [];
		for (let i = 0; i < count; i++) items.push(readItem());
		this.#depth--;
		return items;
	}

	/** An integer from 0 to `max`. */
	uint(field: string, max: number = limits.integer): number {
		const marker = this.#next(field);
		let value: number;
		if (marker < 0x80) value = marker;
		else if (marker >= 0xcc && marker <= 0xce) value = this.#count(field, marker - 0xcc);
		else if (marker === 0xcf || marker === 0xd3) {
			const at = this.#take(field, 8);
			const wide = marker === 0xcf ? this.#view.getBigUint64(at) : this.#view.getBigInt64(at);
			if (wide < 0n || wide > BigInt(max)) throw outOfBounds(field, `${wide} is not from 0 to ${max}`);
			value = Number(wide);
		} else if (marker >= 0xd0 && marker <= 0xd2) {
			const at = this.#take(field, 1 << (marker - 0xd0));
			value =
				marker === 0xd0 ? this.#view.getInt8(at) : marker === 0xd1 ? this.#view.getInt16(at) : this.#view.getInt32(at);
		} else if (marker >= 0xe0) value = marker - 0x100;
		else throw malformed(field, "not an integer");
		if (value < 0 || value > max) throw outOfBounds(field, `${value} is not from 0 to ${max}`);
		return value;
	}

	/** UTF-8 text of at most `limits.textBytes`. */
	text(field: string): string {
		const marker = this.#next(field);
		let length: number;
		if (marker >= 0xa0 && marker < 0xc0) length = marker & 0x1f;
		else if (marker >= 0xd9 && marker <= 0xdb) length = this.#count(field, marker - 0xd9);
		else throw malformed(field, "not text");
		if (length > limits.textBytes) throw outOfBounds(field, `${length} bytes, more than ${limits.textBytes}`);
		const at = this.#take(field, length);
		try {
			return utf8.decode(this.#bytes.subarray(at, at + length));
		} catch {
			throw malformed(field, "not UTF-8");
		}
	}

	/** Bytes, a view into the message. */
	bin(field: string, max: number): Uint8Array {
		const marker = this.#next(field);
		if (marker < 0xc4 || marker > 0xc6) throw malformed(field, "not bytes");
		const length = this.#count(field, marker - 0xc4);
		if (length > max) throw outOfBounds(field, `${length} bytes, more than ${max}`);
		const at = this.#take(field, length);
		return this.#bytes.subarray(at, at + length);
	}

	/** Exactly `length` bytes, a view into the message. */
	fixed(field: string, length: number): Uint8Array {
		const bytes = this.bin(field, limits.messageBytes);
		if (bytes.length !== length) throw malformed(field, `${bytes.length} bytes, not ${length}`);
		return bytes;
	}

	/** True, and the nil taken, when the next element is nil. */
	nil(): boolean {
		if (this.#bytes[this.#offset] !== 0xc0) return false;
		this.#offset++;
		return true;
	}

	/** True when the next element is a bin. */
	get atBin(): boolean {
		const marker = this.#bytes[this.#offset] ?? 0;
		return marker >= 0xc4 && marker <= 0xc6;
	}

	/** Throws `malformed` when bytes are left. */
	end(field: string): void {
		const left = this.#bytes.length - this.#offset;
		if (left > 0) throw malformed(field, `${left} bytes after its end`);
	}

	/** Passes over one value of any msgpack type. */
	skip(field: string): void {
		const marker = this.#next(field);
		if (marker < 0x80 || marker >= 0xe0) return;
		if (marker < 0x90) this.#skipItems(field, 2 * (marker & 0x0f));
		else if (marker < 0xa0) this.#skipItems(field, marker & 0x0f);
		else if (marker < 0xc0) this.#take(field, marker & 0x1f);
		else if (marker === 0xc1) throw malformed(field, "not msgpack");
		else if (marker <= 0xc3) return;
		else if (marker <= 0xc6) this.#take(field, this.#count(field, marker - 0xc4));
		else if (marker <= 0xc9) this.#take(field, this.#count(field, marker - 0xc7) + 1);
		else if (marker <= 0xcb) this.#take(field, marker === 0xca ? 4 : 8);
		else if (marker <= 0xd3) this.#take(field, 1 << (marker & 3));
		else if (marker <= 0xd8) this.#take(field, (1 << (marker - 0xd4)) + 1);
		else if (marker <= 0xdb) this.#take(field, this.#count(field, marker - 0xd9));
		else if (marker <= 0xdd) this.#skipItems(field, this.#count(field, marker - 0xdb));
		else this.#skipItems(field, 2 * this.#count(field, marker - 0xdd));
	}

	#skipItems(field: string, count: number): void {
		this.#enter(field, count);
		for (let i = 0; i < count; i++) this.skip(field);
		this.#depth--;
	}

	/** Takes an array's header and goes one level deeper. */
	#open(field: string): number {
		const marker = this.#next(field);
		let count: number;
		if (marker >= 0x90 && marker < 0xa0) count = marker & 0x0f;
		else if (marker === 0xdc || marker === 0xdd) count = this.#count(field, marker - 0xdb);
		else throw malformed(field, "not an array");
		this.#enter(field, count);
		return count;
	}

	#enter(field: string, count: number): void {
		if (count > this.#bytes.length - this.#offset) throw malformed(field, `${count} items in fewer bytes`);
		if (++this.#depth > limits.nestingDepth) throw outOfBounds(field, `nested deeper than ${limits.nestingDepth}`);
	}

	/** A big-endian count of 1, 2 or 4 bytes (`width` 0, 1, 2). */
	#count(field: string, width: number): number {
		const at = this.#take(field, 1 << width);
		if (width === 0) return this.#view.getUint8(at);
		return width === 1 ? this.#view.getUint16(at) : this.#view.getUint32(at);
	}

	#next(field: string): number {
		return this.#view.getUint8(this.#take(field, 1));
	}

	#take(field: string, length: number): number {
		const at = this.#offset;
		if (length > this.#bytes.length - at) throw malformed(field, "the message ends within it");
		this.#offset = at + length;
		return at;
	}
}
