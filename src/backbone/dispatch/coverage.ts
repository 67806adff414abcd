import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";

/** The experts of some layers that nobody holds: `layer:expert`, the first few of them, and how many in all. */
export interface Gaps {
	readonly count: number;
	readonly first: readonly string[];
}

const shown = 8;

/** @param holders (layers, experts): how many workers hold each expert */
export function gapsIn(holders: Uint16Array, experts: number, layers: readonly number[]): Gaps {
	const first: string[] = [];
	let count = 0;
	for (const layer of layers) {
		for (let expert = 0; expert < experts; expert++) {
			if (holders[layer * experts + expert] !== 0) continue;
			if (count++ < shown) first.push(`${layer}:${expert}`);
		}
	}
	return { count, first };
}

/**
 * Resolves when every expert of the layers has a holder that may be asked. Waits as long as they become more.
 * Throws `timeout` with what is missing after `timeoutMs` without progress, or the signal's reason.
 *
 * @param changed calls its argument whenever holdings may have changed; returns how to stop that
 */
export function waitForCoverage(
	parts: {
		readonly gaps: () => Gaps;
		readonly changed: (listener: () => void) => () => void;
		readonly clock: Clock;
	},
	{ timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<void> {
	return new Promise((resolve, reject) => {
		let fewest = Number.POSITIVE_INFINITY;
		let cancelTimer = () => {};
		const check = () => {
			const { count } = parts.gaps();
			if (count === 0) finish(resolve);
			else if (count < fewest) {
				fewest = count;
				cancelTimer();
				cancelTimer = parts.clock.after(timeoutMs, () => finish(() => reject(notCovered(parts.gaps(), timeoutMs))));
			}
		};
		const abort = () => finish(() => reject(signal!.reason));
		const unsubscribe = parts.changed(check);
		function finish(settle: () => void): void {
			cancelTimer();
			unsubscribe();
			signal?.removeEventListener("abort", abort);
			settle();
		}
		signal?.addEventListener("abort", abort, { once: true });
		if (signal?.aborted) abort();
		else check();
	});
}

function notCovered({ count, first }: Gaps, timeoutMs: number): KvasirError {
	return new KvasirError(
		"timeout",
		`Cannot start: after ${Math.round(timeoutMs / 1000)} s without progress no worker holds ${count} of the experts (${first.join(", ")}${count > first.length ? ", ..." : ""})`,
		{ hint: "Start more workers, or give them more memory", facts: { missing: count, first } },
	);
}
