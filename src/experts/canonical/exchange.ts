import { KvasirError } from "../../errors.ts";

/** The largest job: its rows, intermediate and final vectors. Address space only; pages are used as jobs need them. */
const exchangeBytesMax = 1024 ** 3;
const firstBytes = 1024 ** 2;

type GrowableShared = SharedArrayBuffer & { grow(bytes: number): void };
type GrowableConstructor = new (bytes: number, options: { maxByteLength: number }) => GrowableShared;

/** Memory all threads see, where jobs are described and their rows and answers lie. It grows in place, so that it is shared once. */
export function makeExchange(): SharedArrayBuffer {
	return new (SharedArrayBuffer as unknown as GrowableConstructor)(firstBytes, { maxByteLength: exchangeBytesMax });
}

/** Makes room. Throws `out_of_memory`. */
export function growExchange(exchange: SharedArrayBuffer, bytes: number): void {
	if (bytes <= exchange.byteLength) return;
	try {
		(exchange as GrowableShared).grow(Math.min(exchangeBytesMax, Math.max(bytes, 2 * exchange.byteLength)));
	} catch (cause) {
		throw new KvasirError("out_of_memory", `Cannot compute: ${bytes} bytes of rows at once`, {
			hint: "send fewer rows at a time",
			cause,
		});
	}
}

/** Hands out parts of the exchange, one after the other, for one job. */
export class Plan {
	bytes = 0;

	/** @returns the byte offset of room for `count` values of 4 bytes */
	words(count: number): number {
		return this.take(4 * count);
	}

	/** @returns the byte offset of room for `bytes` bytes */
	take(bytes: number): number {
		const at = this.bytes;
		this.bytes += Math.ceil(bytes / 16) * 16;
		return at;
	}
}
