import type { Context } from "./context.ts";

/** Resolves when the command is asked to end: Ctrl-C, SIGTERM, or a parent that went away. */
export function untilStopped({ signal }: Context): Promise<void> {
	if (signal.aborted) return Promise.resolve();
	return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
