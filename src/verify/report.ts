/** What `kvasir verify` prints as `data` (cli.md). */
export interface VerifyReport {
	readonly model: {
		readonly name: string;
		/** Hexadecimal. */
		readonly modelId: string;
		readonly weights: "file" | "synthetic";
		readonly layers: number;
		readonly experts: number;
		readonly topK: number;
		readonly hidden: number;
	};
	readonly remote: {
		readonly layers: readonly number[];
		/** Distinct (row, expert) pairs. */
		readonly asked: number;
		readonly answered: number;
		readonly fallback: number;
		readonly retried: number;
		readonly workers: readonly VerifiedWorker[];
	};
	readonly tokens: { readonly same: number; readonly total: number; readonly text: string };
	readonly argmax: { readonly same: number; readonly total: number };
	readonly logits: {
		readonly identical: boolean;
		/** Hexadecimal SHA-256 of the compared run's logits, all positions of all prompts in order. */
		readonly sha256: string;
		readonly cosineMin: number;
		readonly cosineMean: number;
		readonly cosineMedian: number;
		readonly maxAbs: number;
		readonly klMax: number;
	};
	readonly partials: { readonly pairs: number; readonly identical: number; readonly worst: number };
	readonly firstDivergence: Divergence | null;
	/** Dispatches, how many of them ask for sums of whole rows (mode 1) and carry rows as q14; bytes of rows and of vectors. */
	readonly wire: {
		readonly messages: number;
		readonly wholeRows: number;
		readonly q14: number;
		readonly bytesSent: number;
		readonly bytesReceived: number;
	};
	readonly served: {
		readonly pairs: number;
		readonly bytes: number;
		readonly units: number;
		readonly kvr: string;
		readonly nano: string;
	};
	readonly timing: {
		readonly localTokensPerSecond: number;
		readonly remoteTokensPerSecond: number;
		readonly roundTrips: number;
	};
	readonly verdict: Verdict;
}

export type Verdict = "identical" | "equivalent" | "different" | "incomplete";

export interface VerifiedWorker {
	readonly key: string;
	readonly class: string;
	readonly pairs: number;
	readonly rttMsP50: number;
	readonly computeMsP50: number;
}

/** Where two runs first disagreed: a partial (layer, expert and worker are known), or only the logits. */
export interface Divergence {
	readonly prompt: string;
	readonly position: number;
	readonly layer: number | null;
	readonly expert: number | null;
	readonly worker: string | null;
	readonly local: number;
	readonly remote: number;
}
