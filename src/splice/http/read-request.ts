import { KvasirError } from "../../errors.ts";

/** The JSON of a request's body. Throws `malformed`. */
export function readJson(body: Uint8Array): unknown {
	try {
		return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
	} catch (cause) {
		throw new KvasirError("malformed", "Cannot read the request: its body is not JSON", { cause });
	}
}

/** A whole number from 0 to `max` in the query; `absent` where it is not given. Throws `malformed`. */
export function readCount(query: URLSearchParams, name: string, absent: number, max: number): number {
	const text = query.get(name);
	if (text === null) return absent;
	const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
	if (!(value <= max))
		throw new KvasirError("malformed", `Cannot read the request: ${name} is not a number from 0 to ${max}`);
	return value;
}

/** A SHA-256 in hex in the query. Throws `malformed`. */
export function readHash(query: URLSearchParams, name: string): string {
	const text = query.get(name) ?? "";
	if (!/^[0-9a-f]{64}$/.test(text)) {
		throw new KvasirError("malformed", `Cannot read the request: ${name} is not a SHA-256 in hex`);
	}
	return text;
}
