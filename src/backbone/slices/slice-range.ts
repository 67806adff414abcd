/** Bytes `first` to `last`, both included. */
export interface ByteRange {
	readonly first: number;
	readonly last: number;
}

/** Reads a Range header (RFC 9110 section 14) of one range; null for none, or one to be ignored: then the whole is sent. */
export function rangeOf(header: string | undefined, length: number): ByteRange | "unsatisfiable" | null {
	const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "");
	if (match === null) return null;
	const [, from = "", to = ""] = match;
	if (from === "" && to === "") return null;
	if (from === "") {
		const suffix = Math.min(Number(to), length);
		return suffix === 0 ? "unsatisfiable" : { first: length - suffix, last: length - 1 };
	}
	const first = Number(from);
	const last = to === "" ? length - 1 : Math.min(Number(to), length - 1);
	if (to !== "" && Number(to) < first) return null;
	return first >= length ? "unsatisfiable" : { first, last };
}
