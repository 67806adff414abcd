import type { WorkerLink } from "../links/worker-link.ts";
import type { PlannedDispatch } from "./plan.ts";

/** Pairs that may be asked twice, as a share of those asked; and how many before much was asked. */
const hedgeShare = 0.02;
const hedgeStartPairs = 256;
/** A dispatch is slow after this many times the time it was expected to take, and not before the least. */
const slowFactor = 3;
const slowMsMin = 400;

/** How many pairs may be asked of a second worker while the first has not failed yet (ledger.md section 3: 2% of pairs). */
export class HedgeBudget {
	#asked = 0;
	#hedged = 0;

	get hedged(): number {
		return this.#hedged;
	}

	asked(pairs: number): void {
		this.#asked += pairs;
	}

	/** True, and spent, when the budget covers `pairs` more. */
	spend(pairs: number): boolean {
		if (this.#hedged + pairs > hedgeStartPairs + hedgeShare * this.#asked) return false;
		this.#hedged += pairs;
		return true;
	}
}

/** Milliseconds after which a worker is slow with what was just given to it. */
export function slowAfterMs({ pace, backlogBytes }: Pick<WorkerLink, "pace" | "backlogBytes">): number {
	return Math.max(slowMsMin, slowFactor * pace.expectedMs(backlogBytes));
}

/** Another worker that holds every expert of a dispatch and would be done first; undefined when there is none. */
export function rivalFor(
	{ pairs }: Pick<PlannedDispatch<WorkerLink>, "pairs">,
	request: { readonly layer: number; readonly expert: Uint16Array },
	candidates: readonly WorkerLink[],
): WorkerLink | undefined {
	return candidates
		.filter(({ holdings }) => pairs.every((pair) => holdings.has(request.layer, request.expert[pair]!)))
		.sort((a, b) => a.pace.expectedMs(a.backlogBytes) - b.pace.expectedMs(b.backlogBytes))[0];
}
