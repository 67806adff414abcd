// Which worker computes which pairs. Pure: the same request, holders and loads give the same plan.

/** A worker as the plan sees it. */
export interface Holder {
	/** Milliseconds of a round trip of nothing. */
	readonly floorMs: number;
	readonly bytesPerMs: number;
	/** Bytes, both ways, queued or in flight. */
	readonly backlogBytes: number;
	/** Rows and bytes (in either direction) one message may have; one row always may go. */
	readonly rowsMax: number;
	readonly messageBytesMax: number;
}

export interface PlanRequest<H extends Holder> {
	readonly rowCount: number;
	/** Per pair, ascending. */
	readonly rowIndex: Uint16Array;
	readonly expert: Uint16Array;
	/** Indices of the pairs to place, ascending; a retry places some only. */
	readonly pairs: readonly number[];
	readonly topK: number;
	/** Bytes of a row, and of a vector. */
	readonly rowBytes: number;
	/** May a worker that holds all experts of a row sum them (mode 1)? */
	readonly wholeRows: boolean;
	readonly pairsMax: number;
	/** Who may be asked for an expert. */
	holders(expert: number): readonly H[];
}

/** One message to one worker. */
export interface PlannedDispatch<H> {
	readonly holder: H;
	readonly mode: 0 | 1;
	/** Indices into the request, ascending: by row, then by rank. */
	readonly pairs: readonly number[];
	/** The distinct rows of the pairs, ascending. */
	readonly rows: readonly number[];
}

export interface Plan<H> {
	readonly dispatches: readonly PlannedDispatch<H>[];
	/** Pairs that nobody holds. */
	readonly unplaced: readonly number[];
}

/** A whole row goes to one worker unless asking several at once would be this many times sooner. */
const wholeRowPatience = 2;

/** Places every pair with exactly one holder: whole rows where one worker holds all of a row, the rest spread over replicas by expected finish. */
export function planDispatches<H extends Holder>(request: PlanRequest<H>): Plan<H> {
	const shares = new Shares<H>(request);
	const rest = request.wholeRows ? placeWholeRows(request, shares) : request.pairs;
	const flexible: number[] = [];
	const unplaced: number[] = [];
	for (const pair of rest) {
		const holders = request.holders(request.expert[pair]!);
		if (holders.length === 0) unplaced.push(pair);
		else if (holders.length === 1) shares.addPair(holders[0]!, pair);
		else flexible.push(pair);
	}
	// Pairs without a choice came first, so that the others see the loads they cause.
	for (const pair of flexible) {
		const holders = request.holders(request.expert[pair]!);
		shares.addPair(soonest(holders, (holder) => shares.finishWithPair(holder, pair)).holder, pair);
	}
	return { dispatches: shares.split(), unplaced };
}

/** Places the rows that one worker can sum; returns the pairs left over. */
function placeWholeRows<H extends Holder>(request: PlanRequest<H>, shares: Shares<H>): number[] {
	const rest: number[] = [];
	for (const rowPairs of groupByRow(request)) {
		const candidates = rowPairs.length === request.topK ? holdersOfAll(request, rowPairs) : [];
		if (candidates.length === 0) {
			rest.push(...rowPairs);
			continue;
		}
		const whole = soonest(candidates, (holder) => shares.finishWithRow(holder));
		const spreadMs = Math.max(
			...rowPairs.map(
				(pair) =>
					soonest(request.holders(request.expert[pair]!), (holder) => shares.finishWithPair(holder, pair)).finishMs,
			),
		);
		if (whole.finishMs <= wholeRowPatience * spreadMs) shares.addRow(whole.holder, rowPairs);
		else rest.push(...rowPairs);
	}
	return rest;
}

function groupByRow<H extends Holder>(request: PlanRequest<H>): number[][] {
	const groups: number[][] = [];
	let row = -1;
	for (const pair of request.pairs) {
		if (request.rowIndex[pair] !== row) {
			row = request.rowIndex[pair]!;
			groups.push([]);
		}
		groups.at(-1)!.push(pair);
	}
	return groups;
}

function holdersOfAll<H extends Holder>(request: PlanRequest<H>, rowPairs: readonly number[]): readonly H[] {
	let candidates = request.holders(request.expert[rowPairs[0]!]!);
	for (const pair of rowPairs.slice(1)) {
		if (candidates.length === 0) break;
		const holders = request.holders(request.expert[pair]!);
		candidates = candidates.filter((holder) => holders.includes(holder));
	}
	return candidates;
}

/** The first holder with the earliest finish. */
function soonest<H extends Holder>(
	holders: readonly H[],
	finishMs: (holder: H) => number,
): { holder: H; finishMs: number } {
	let best = { holder: holders[0]!, finishMs: finishMs(holders[0]!) };
	for (const holder of holders.slice(1)) {
		const candidate = { holder, finishMs: finishMs(holder) };
		if (candidate.finishMs < best.finishMs) best = candidate;
	}
	return best;
}

interface Share {
	bytes: number;
	readonly wholePairs: number[];
	readonly singlePairs: number[];
	/** Per row: 1 when a single pair of it is here, so that another costs no further row. */
	readonly hasRow: Uint8Array;
}

/** What each holder was given so far in one plan. */
class Shares<H extends Holder> {
	readonly #request: PlanRequest<H>;
	readonly #shares = new Map<H, Share>();

	constructor(request: PlanRequest<H>) {
		this.#request = request;
	}

	finishWithRow(holder: H): number {
		return this.#finish(holder, 2 * this.#request.rowBytes);
	}

	finishWithPair(holder: H, pair: number): number {
		const known = this.#shares.get(holder)?.hasRow[this.#request.rowIndex[pair]!] === 1;
		return this.#finish(holder, (known ? 1 : 2) * this.#request.rowBytes);
	}

	addRow(holder: H, pairs: readonly number[]): void {
		const share = this.#share(holder);
		share.bytes += 2 * this.#request.rowBytes;
		share.wholePairs.push(...pairs);
	}

	addPair(holder: H, pair: number): void {
		const share = this.#share(holder);
		const row = this.#request.rowIndex[pair]!;
		share.bytes += (share.hasRow[row] === 1 ? 1 : 2) * this.#request.rowBytes;
		share.hasRow[row] = 1;
		share.singlePairs.push(pair);
	}

	/** One message after the other, each within its holder's limits. */
	split(): PlannedDispatch<H>[] {
		const dispatches: PlannedDispatch<H>[] = [];
		for (const [holder, share] of this.#shares) {
			share.singlePairs.sort((a, b) => a - b);
			this.#splitPairs(holder, 1, share.wholePairs, dispatches);
			this.#splitPairs(holder, 0, share.singlePairs, dispatches);
		}
		return dispatches;
	}

	/** Cuts between rows only. */
	#splitPairs(holder: H, mode: 0 | 1, pairs: readonly number[], into: PlannedDispatch<H>[]): void {
		const { rowIndex, rowBytes, pairsMax } = this.#request;
		let current: { pairs: number[]; rows: number[] } | null = null;
		for (let start = 0, end = 0; start < pairs.length; start = end) {
			const row = rowIndex[pairs[start]!]!;
			while (end < pairs.length && rowIndex[pairs[end]!] === row) end++;
			const pairsAfter = (current?.pairs.length ?? 0) + end - start;
			const rowsAfter = (current?.rows.length ?? 0) + 1;
			const bytesAfter = (mode === 1 ? rowsAfter : Math.max(rowsAfter, pairsAfter)) * rowBytes;
			if (
				current === null ||
				rowsAfter > holder.rowsMax ||
				pairsAfter > pairsMax ||
				bytesAfter > holder.messageBytesMax
			) {
				current = { pairs: [], rows: [] };
				into.push({ holder, mode, ...current });
			}
			for (let at = start; at < end; at++) current.pairs.push(pairs[at]!);
			current.rows.push(row);
		}
	}

	#finish(holder: H, extraBytes: number): number {
		const bytes = holder.backlogBytes + (this.#shares.get(holder)?.bytes ?? 0) + extraBytes;
		return holder.floorMs + bytes / holder.bytesPerMs;
	}

	#share(holder: H): Share {
		let share = this.#shares.get(holder);
		if (share === undefined) {
			share = { bytes: 0, wholePairs: [], singlePairs: [], hasRow: new Uint8Array(this.#request.rowCount) };
			this.#shares.set(holder, share);
		}
		return share;
	}
}
