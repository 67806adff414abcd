/** Bytes as people read them: `9.0 MiB`. */
export function formatBytes(bytes: number): string {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(bytes, 1)) / 10)));
	const amount = bytes / 2 ** (10 * power);
	return `${power === 0 ? amount : amount.toFixed(1)} ${units[power]}`;
}

/** A duration in the unit that leaves two to four digits: `640 us`, `12.3 ms`, `4.56 s`. */
export function formatMs(ms: number): string {
	if (ms < 1) return `${Math.round(ms * 1000)} us`;
	if (ms < 1000) return `${ms.toFixed(ms < 100 ? 1 : 0)} ms`;
	return `${(ms / 1000).toFixed(2)} s`;
}

/** A count with separators, whatever the locale: `1,277,952`. */
export function formatCount(count: number): string {
	return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** So many of something, with an `s` unless it is one: `1 expert`, `1,024 experts`. */
export function formatCounted(count: number, one: string): string {
	return `${formatCount(count)} ${count === 1 ? one : `${one}s`}`;
}
