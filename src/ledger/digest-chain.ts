import { sha256 } from "../io/crypto.ts";

/** The digest before the first paid dispatch of a window. */
export const emptyDigest: Uint8Array = new Uint8Array(32);

/**
 * Extends a window's digest by one paid dispatch; ids ascend. Backbone and worker compute the same chain from their own logs:
 * SHA-256(digest || id u64 LE || pairs u32 LE || SHA-256 of the answer message).
 */
export function extendDigest(digest: Uint8Array, id: number, pairs: number, answerHash: Uint8Array): Uint8Array {
	const figures = new Uint8Array(12);
	const view = new DataView(figures.buffer);
	view.setBigUint64(0, BigInt(id), true);
	view.setUint32(8, pairs, true);
	return sha256(digest, figures, answerHash);
}
