import { setImmediate as nextTurn } from "node:timers/promises";

interface Waiting<Item, Answer> {
	readonly item: Item;
	resolve(answer: Answer): void;
	reject(error: unknown): void;
}

/**
 * Collects items that arrive while a group is being committed and hands them on together: one transaction, one fsync, for many.
 * `commit` answers in the order of its items; when it throws, each item is tried once more alone, so that one bad
 * item never takes others with it.
 */
export class GroupCommit<Item, Answer> {
	#waiting: Waiting<Item, Answer>[] = [];
	#running: Promise<void> | null = null;
	readonly #commit: (items: readonly Item[]) => Promise<readonly Answer[]>;
	readonly #groupMax: number;

	constructor(commit: (items: readonly Item[]) => Promise<readonly Answer[]>, groupMax: number) {
		this.#commit = commit;
		this.#groupMax = groupMax;
	}

	/** Resolves with the item's answer once its group is durable. */
	add(item: Item): Promise<Answer> {
		return new Promise((resolve, reject) => {
			this.#waiting.push({ item, resolve, reject });
			this.#running ??= this.#run();
		});
	}

	/** Resolves when everything added so far is settled. */
	async idle(): Promise<void> {
		while (this.#running !== null) await this.#running;
	}

	async #run(): Promise<void> {
		while (this.#waiting.length > 0) {
			// A turn of the event loop, so that all messages that are already here join the group.
			await nextTurn();
			await this.#settle(this.#waiting.splice(0, this.#groupMax));
		}
		this.#running = null;
	}

	async #settle(group: readonly Waiting<Item, Answer>[]): Promise<void> {
		try {
			const answers = await this.#commit(group.map((waiting) => waiting.item));
			group.forEach((waiting, i) => {
				waiting.resolve(answers[i]!);
			});
		} catch (error) {
			if (group.length === 1) return group[0]!.reject(error);
			for (const waiting of group) await this.#settle([waiting]);
		}
	}
}
