import type { DecodeReport } from "../../backbone/decode/decode-messages.ts";

/** What happened between two reports of one decode thread: sums become differences, name by name. */
export function reportSince(before: DecodeReport, after: DecodeReport): Pick<DecodeReport, "remote" | "times"> {
	const { remote } = after;
	return {
		times: difference(after.times, before.times),
		remote: remote && {
			...difference(remote, before.remote ?? {}),
			failures: difference(remote.failures, before.remote?.failures ?? {}),
		},
	};
}

/** The numbers of `after` less those of `before`; those that did not change in a record of counters stay, as 0. */
function difference<T extends object>(after: T, before: object): T {
	const earlier = before as Readonly<Record<string, unknown>>;
	const entries = Object.entries(after).map(([name, value]) => [
		name,
		typeof value === "number" ? value - Number(earlier[name] ?? 0) : value,
	]);
	return Object.fromEntries(entries) as T;
}
