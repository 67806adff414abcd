import type { Clock } from "../io/clock.ts";

/** What a check found: fine, worth knowing, or in the way. */
export interface Finding {
	readonly state: "ok" | "warning" | "failed";
	/** What was done and seen. */
	readonly found: string;
	/** What helps. */
	readonly hint?: string;
}

/** One thing that is tried out. */
export interface Check {
	readonly name: string;
	run(signal: AbortSignal): Promise<Finding>;
}

export interface CheckResult extends Finding {
	readonly name: string;
	readonly ms: number;
}

const checkMs = 30_000;

/** Runs the checks one after the other; one that throws or hangs is a failed one, and the others still run. */
export async function runChecks(
	checks: readonly Check[],
	{ clock, signal, report = () => {} }: { clock: Clock; signal: AbortSignal; report?: (name: string) => void },
): Promise<CheckResult[]> {
	const results: CheckResult[] = [];
	for (const { name, run } of checks) {
		signal.throwIfAborted();
		report(name);
		const startMs = clock.monotonic();
		const finding = await within(run, clock, signal);
		results.push({ name, ...finding, ms: Math.round(clock.monotonic() - startMs) });
	}
	return results;
}

async function within(run: Check["run"], clock: Clock, outer: AbortSignal): Promise<Finding> {
	const stop = new AbortController();
	const signal = AbortSignal.any([stop.signal, outer]);
	const late = new Promise<Finding>((resolve) => {
		const cancel = clock.after(checkMs, () => {
			resolve({ state: "failed", found: `no answer in ${checkMs / 1000} s` });
			stop.abort();
		});
		signal.addEventListener("abort", cancel, { once: true });
	});
	try {
		return await Promise.race([run(signal), late]);
	} catch (error) {
		const { message, hint } = error as { message: string; hint?: string };
		return { state: "failed", found: message, ...(hint ? { hint } : {}) };
	} finally {
		stop.abort();
	}
}
