import { emptyDigest, extendDigest } from "../ledger/digest-chain.ts";

/** What a window of answers adds up to, by the worker's own count. */
export interface ActivityFigures {
	readonly pairs: number;
	readonly digest: Uint8Array;
}

/** Answers kept for receipts: four minutes at a thousand a second. Beyond, the oldest is forgotten, and its pay with it. */
const activityMax = 262_144;

/** What was answered in this session and is in no receipt yet: id, pairs, SHA-256 of the answer message. */
export class ActivityLog {
	readonly #answers = new Map<number, { readonly pairs: number; readonly answerHash: Uint8Array }>();
	readonly #max: number;
	#forgotten = 0;

	constructor(max = activityMax) {
		this.#max = max;
	}

	get size(): number {
		return this.#answers.size;
	}

	/** Answers dropped because no receipt came for too long. */
	get forgotten(): number {
		return this.#forgotten;
	}

	answered(id: number, pairs: number, answerHash: Uint8Array): void {
		if (this.#answers.size >= this.#max) {
			for (const oldest of this.#answers.keys()) {
				this.#answers.delete(oldest);
				this.#forgotten++;
				break;
			}
		}
		this.#answers.set(id, { pairs, answerHash });
	}

	/** How many pairs an answer was for; 0 where there was none. */
	pairsOf(id: number): number {
		return this.#answers.get(id)?.pairs ?? 0;
	}

	/** Pairs and digest of the answers with ids in (from, to] that are not in `unpaid`. Answers need not have been given in the order of ids. */
	figures(from: number, to: number, unpaid: ReadonlySet<number>): ActivityFigures {
		const ids = [...this.#answers.keys()]
			.filter((id) => id > from && id <= to && !unpaid.has(id))
			.sort((a, b) => a - b);
		let pairs = 0;
		let digest = emptyDigest;
		for (const id of ids) {
			const answer = this.#answers.get(id)!;
			pairs += answer.pairs;
			digest = extendDigest(digest, id, answer.pairs, answer.answerHash);
		}
		return { pairs, digest };
	}

	/** A receipt covered everything up to `to`. */
	forget(to: number): void {
		for (const id of this.#answers.keys()) if (id <= to) this.#answers.delete(id);
	}
}
