import type { Clock } from "../io/clock.ts";
import { systemError } from "../io/system-error.ts";

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
	/** @default 30 s */
	readonly limitMs?: number;
	run(signal: AbortSignal): Promise<Finding>;
}

export interface CheckResult extends Finding {
	readonly name: string;
	readonly ms: number;
}

const limitMsDefault = 30_000;

/** Runs the checks one after the other, those of one list at the same time; one that throws or hangs is a failed one, and the others still run. */
export async function runChecks(
	checks: readonly (Check | readonly Check[])[],
	{ clock, signal, report = () => {} }: { clock: Clock; signal: AbortSignal; report?: (name: string) => void },
): Promise<CheckResult[]> {
	const results: CheckResult[] = [];
	const result = async (check: Check) => {
		const startMs = clock.monotonic();
		const finding = await within(check, clock, signal);
		return { name: check.name, ...finding, ms: Math.round(clock.monotonic() - startMs) };
	};
	for (const one of checks) {
		signal.throwIfAborted();
		const group = [one].flat();
		report(group.map(({ name }) => name).join(", "));
		results.push(...(await Promise.all(group.map(result))));
	}
	return results;
}

async function within(check: Check, clock: Clock, outer: AbortSignal): Promise<Finding> {
	const { limitMs = limitMsDefault } = check;
	const stop = new AbortController();
	const signal = AbortSignal.any([stop.signal, outer]);
	const late = new Promise<Finding>((resolve) => {
		const cancel = clock.after(limitMs, () => {
			resolve({ state: "failed", found: `no answer in ${limitMs / 1000} s` });
			stop.abort();
		});
		signal.addEventListener("abort", cancel, { once: true });
	});
	try {
		return await Promise.race([check.run(signal), late]);
	} catch (error) {
		const { message, hint } = (systemError(error) ?? error) as { message: string; hint?: string };
		return { state: "failed", found: message, ...(hint ? { hint } : {}) };
	} finally {
		stop.abort();
	}
}
