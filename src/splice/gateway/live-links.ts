/** One spliced link, as status shows it. */
export interface LiveLink {
	/** Base58. */
	readonly key: string;
	readonly peer: string;
	readonly model: string;
	readonly openedAtMs: number;
	bytes(): { fromWorker: number; toWorker: number };
	/** Ends it at once: its key was banned. */
	cut(): void;
}

/** The links that are spliced now, and the bytes of all that were. */
export interface LiveLinks extends Iterable<LiveLink> {
	add(link: LiveLink): void;
	remove(link: LiveLink): void;
	bytes(): { fromWorker: number; toWorker: number };
	readonly size: number;
	/** Resolves when none is live. */
	empty(): Promise<void>;
}

export function createLiveLinks(): LiveLinks {
	const live = new Set<LiveLink>();
	const ended = { fromWorker: 0, toWorker: 0 };
	const waiting: (() => void)[] = [];
	return {
		[Symbol.iterator]: () => live[Symbol.iterator](),
		add: (link) => void live.add(link),
		remove(link) {
			const { fromWorker, toWorker } = link.bytes();
			ended.fromWorker += fromWorker;
			ended.toWorker += toWorker;
			live.delete(link);
			if (live.size === 0) for (const resolve of waiting.splice(0)) resolve();
		},
		bytes() {
			const sum = { ...ended };
			for (const link of live) {
				const { fromWorker, toWorker } = link.bytes();
				sum.fromWorker += fromWorker;
				sum.toWorker += toWorker;
			}
			return sum;
		},
		get size() {
			return live.size;
		},
		empty: () => (live.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
	};
}
