import { networkInterfaces } from "node:os";
import type { Clock } from "../../io/clock.ts";

const lookMs = 5_000;
/** The wall clock ran on this much longer than our timer: the machine slept. */
const sleptMs = 10_000;

/**
 * Calls `changed` when the machine woke up, or an address of it is gone: links over it are dead, and nobody says so.
 * The returned function ends that.
 */
export function watchNetwork(clock: Clock, addresses: () => ReadonlySet<string>, changed: () => void): () => void {
	let known = addresses();
	let lastMs = clock.now();
	let cancel = clock.after(lookMs, look);
	function look(): void {
		const nowMs = clock.now();
		const missedMs = nowMs - lastMs - lookMs;
		const present = addresses();
		const lost = [...known].some((address) => !present.has(address));
		[known, lastMs] = [present, nowMs];
		cancel = clock.after(lookMs, look);
		if (lost || missedMs > sleptMs) changed();
	}
	return () => cancel();
}

/** The addresses of this machine that lead out of it. */
export function ownAddresses(): ReadonlySet<string> {
	const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
	return new Set(all.filter(({ internal }) => !internal).map(({ address }) => address));
}
