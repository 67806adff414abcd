/** Time, passed in: nothing outside src/io reads the system clock or sets a timer. */
export interface Clock {
	/** Wall-clock milliseconds since 1970; may jump. */
	now(): number;
	/** Milliseconds that never go back, for durations and deadlines. */
	monotonic(): number;
	/** Calls `fn` once after `delayMs`; the returned function cancels it. The timer never keeps a process alive. */
	after(delayMs: number, fn: () => void): () => void;
	/** Resolves after `delayMs`; rejects with the signal's reason when it aborts. */
	sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** The real clock. */
export const systemClock: Clock = {
	now: () => Date.now(),
	monotonic: () => performance.now(),
	after(delayMs, fn) {
		const timer = setTimeout(fn, delayMs);
		timer.unref();
		return () => clearTimeout(timer);
	},
	sleep(delayMs, signal) {
		return new Promise((resolve, reject) => {
			if (signal?.aborted) return reject(signal.reason);
			const abort = () => {
				clearTimeout(timer);
				reject(signal?.reason);
			};
			const timer = setTimeout(() => {
				signal?.removeEventListener("abort", abort);
				resolve();
			}, delayMs);
			signal?.addEventListener("abort", abort, { once: true });
		});
	},
};
