/** The milliseconds since 1970 of an HTTP `Date` header, whole seconds; null where it is none. */
export function httpDateMs(header: string): number | null {
	const ms = Date.parse(header);
	return Number.isNaN(ms) ? null : ms;
}
