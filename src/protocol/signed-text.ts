/** Seconds a signed time may differ from ours, either way. */
export const skewMaxSeconds = 60;

/** Why a signed header was not believed; each is an HTTP 401 (`skew` with the server's time, so that the peer can correct itself). */
export type SignedHeaderRefusal = "missing" | "malformed" | "signature" | "skew" | "replay";

/** The text a signature covers: one field a line. Null when a field could pass for two (a control character in it). */
export function signedText(fields: readonly string[]): Uint8Array | null {
	// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not pass
	if (fields.some((field) => /[\u0000-\u001f\u007f]/.test(field))) return null;
	return new TextEncoder().encode(fields.join("\n"));
}

/** Bytes as base64url without padding. */
export function base64url(bytes: Uint8Array): string {
	return Buffer.from(bytes).toString("base64url");
}

/** The bytes of base64url text (already checked by the caller's pattern). */
export function fromBase64url(text: string): Uint8Array {
	return Buffer.from(text, "base64url");
}
