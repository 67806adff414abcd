// Who should hold what. A pure plan: experts are numbers `layer * experts + expert`, workers are names.

/** A worker that holds what it is told to. */
export interface AssignableWorker {
	readonly name: string;
	/** How many experts fit. */
	readonly capacity: number;
	/** What it serves now. */
	readonly ready: ReadonlySet<number>;
	/** What it was told to hold last; null: nothing yet. */
	readonly wanted: ReadonlySet<number> | null;
}

export interface AssignInput {
	/** The experts that workers should hold, ascending. */
	readonly asked: readonly number[];
	/** Experts of a layer: neighbours of one layer are kept together. */
	readonly experts: number;
	readonly workers: readonly AssignableWorker[];
	/** Holders of each expert that hold by their operator's wish. */
	readonly fixed: (expert: number) => number;
	/** How often the router chose each expert. */
	readonly heat: (expert: number) => number;
}

/** An expert nobody was routed to yet counts as this share of the average: its second copy comes last, but it comes. */
const coldShare = 0.05;
/** Replicas move to a hotter expert only when that gains this much, and so many in one plan, as a share of all that is held. */
const swapGain = 2;
const swapShare = 0.02;

/**
 * What each worker should hold, by name: what it has stays where there is room, experts without a holder come first (the hottest
 * where there is no room for all), then second and further copies of the hottest. Nothing is taken from a worker while no other
 * serves it; a replica is given up for an expert without a holder, and, a few in a plan, for a much hotter one.
 */
export function planAssignments(input: AssignInput): Map<string, ReadonlySet<number>> {
	const plan = new Plan(input);
	plan.coverGaps();
	plan.replicate();
	plan.rebalance();
	return plan.result();
}

interface Place {
	readonly worker: AssignableWorker;
	readonly holds: Set<number>;
	/** Of each layer, how many it holds. */
	readonly perLayer: Map<number, number>;
}

class Plan {
	readonly #input: AssignInput;
	readonly #places: readonly Place[];
	readonly #copies = new Map<number, number>();
	/** Copies that serve now and stay: the last of them is never taken away. */
	readonly #serving = new Map<number, number>();
	readonly #cold: number;

	constructor(input: AssignInput) {
		const { asked, workers, fixed, heat } = input;
		this.#input = input;
		for (const expert of asked) {
			this.#copies.set(expert, fixed(expert));
			this.#serving.set(expert, fixed(expert));
		}
		const mean = asked.reduce((sum, expert) => sum + heat(expert), 0) / Math.max(1, asked.length);
		this.#cold = Math.max(mean * coldShare, 1e-9);
		this.#places = workers.map((worker) => ({ worker, holds: new Set<number>(), perLayer: new Map<number, number>() }));
		for (const place of this.#places) this.#keep(place);
	}

	coverGaps(): void {
		const gaps = this.#input.asked.filter((expert) => this.#copies.get(expert) === 0);
		const hottestFirst = [...gaps].sort((a, b) => this.#input.heat(b) - this.#input.heat(a) || a - b);
		const room = this.#places.reduce((sum, place) => sum + roomOf(place), 0);
		for (const expert of hottestFirst.slice(0, room).sort((a, b) => a - b)) this.#give(expert, this.#bestFor(expert)!);
		const victims = this.#redundant();
		for (const expert of hottestFirst.slice(room)) {
			const victim = this.#nextVictim(victims, Number.POSITIVE_INFINITY);
			if (victim === null) return;
			this.#take(victim.expert, victim.place);
			this.#give(expert, victim.place);
		}
	}

	replicate(): void {
		const hottest = new Heap(this.#input.asked.map((expert) => ({ expert, value: this.#value(expert) })));
		for (let next = hottest.pop(); next !== null; next = hottest.pop()) {
			const place = this.#bestFor(next.expert);
			if (place === null) continue;
			this.#give(next.expert, place);
			hottest.push({ expert: next.expert, value: this.#value(next.expert) });
		}
	}

	rebalance(): void {
		const held = this.#places.reduce((sum, { holds }) => sum + holds.size, 0);
		const wanted = [...this.#input.asked].sort((a, b) => this.#value(b) - this.#value(a));
		const victims = this.#redundant();
		for (const expert of wanted.slice(0, Math.ceil(held * swapShare))) {
			const victim = this.#nextVictim(victims, this.#value(expert) / swapGain, expert);
			if (victim === null) continue;
			this.#take(victim.expert, victim.place);
			this.#give(expert, victim.place);
		}
	}

	result(): Map<string, ReadonlySet<number>> {
		return new Map(this.#places.map(({ worker, holds }) => [worker.name, holds]));
	}

	/** What it was told to hold (before the first time: what it has), as far as it fits; what serves goes before what does not yet. */
	#keep(place: Place): void {
		const { wanted, ready, capacity } = place.worker;
		const before = [...(wanted ?? ready)].filter((expert) => this.#copies.has(expert));
		const servingFirst = [
			...before.filter((expert) => ready.has(expert)),
			...before.filter((expert) => !ready.has(expert)),
		];
		for (const expert of servingFirst.slice(0, capacity)) this.#give(expert, place);
	}

	#value(expert: number): number {
		const copies = this.#copies.get(expert)!;
		return copies === 0 ? Number.POSITIVE_INFINITY : (this.#input.heat(expert) + this.#cold) / copies;
	}

	/** The worker with room that has most of the expert's layer; of equals the one with most room. */
	#bestFor(expert: number): Place | null {
		const layer = Math.floor(expert / this.#input.experts);
		let best: Place | null = null;
		for (const place of this.#places) {
			if (roomOf(place) <= 0 || place.holds.has(expert)) continue;
			if (best === null) best = place;
			else {
				const more = (place.perLayer.get(layer) ?? 0) - (best.perLayer.get(layer) ?? 0);
				if (more > 0 || (more === 0 && roomOf(place) > roomOf(best))) best = place;
			}
		}
		return best;
	}

	/** Every copy that others serve too, the least valuable first. */
	#redundant(): { place: Place; expert: number }[] {
		return this.#places
			.flatMap((place) => [...place.holds].map((expert) => ({ place, expert })))
			.filter(({ place, expert }) => this.#isRedundant(expert, place))
			.sort((a, b) => this.#value(a.expert) - this.#value(b.expert) || a.expert - b.expert);
	}

	#isRedundant(expert: number, { worker, holds }: Place): boolean {
		if (!holds.has(expert)) return false;
		const others = this.#serving.get(expert)! - (worker.ready.has(expert) ? 1 : 0);
		return others >= 1;
	}

	/** Takes the first of the victims that still is one, is worth less than `below`, and whose worker lacks `expert`. */
	#nextVictim(
		victims: { place: Place; expert: number }[],
		below: number,
		expert?: number,
	): { place: Place; expert: number } | null {
		const at = victims.findIndex(
			(victim) =>
				this.#isRedundant(victim.expert, victim.place) &&
				this.#value(victim.expert) < below &&
				victim.expert !== expert &&
				(expert === undefined || !victim.place.holds.has(expert)),
		);
		return at < 0 ? null : victims.splice(at, 1)[0]!;
	}

	#give(expert: number, place: Place): void {
		const layer = Math.floor(expert / this.#input.experts);
		place.holds.add(expert);
		place.perLayer.set(layer, (place.perLayer.get(layer) ?? 0) + 1);
		this.#count(expert, place, 1);
	}

	#take(expert: number, place: Place): void {
		const layer = Math.floor(expert / this.#input.experts);
		place.holds.delete(expert);
		place.perLayer.set(layer, place.perLayer.get(layer)! - 1);
		this.#count(expert, place, -1);
	}

	#count(expert: number, { worker }: Place, change: number): void {
		this.#copies.set(expert, this.#copies.get(expert)! + change);
		if (worker.ready.has(expert)) this.#serving.set(expert, this.#serving.get(expert)! + change);
	}
}

function roomOf({ worker, holds }: Place): number {
	return worker.capacity - holds.size;
}

interface Valued {
	readonly expert: number;
	readonly value: number;
}

/** A binary heap, the most valuable first; equals by their number, so that a plan is the same every time. */
class Heap {
	readonly #items: Valued[] = [];

	constructor(items: readonly Valued[]) {
		for (const item of items) this.push(item);
	}

	push(item: Valued): void {
		const items = this.#items;
		let at = items.push(item) - 1;
		while (at > 0) {
			const parent = (at - 1) >> 1;
			if (!before(items[at]!, items[parent]!)) return;
			this.#swap(at, parent);
			at = parent;
		}
	}

	pop(): Valued | null {
		const items = this.#items;
		const first = items[0];
		const last = items.pop();
		if (first === undefined || last === undefined) return null;
		if (items.length === 0) return first;
		items[0] = last;
		for (let at = 0; ; ) {
			const [left, right] = [2 * at + 1, 2 * at + 2];
			let best = at;
			if (left < items.length && before(items[left]!, items[best]!)) best = left;
			if (right < items.length && before(items[right]!, items[best]!)) best = right;
			if (best === at) return first;
			this.#swap(at, best);
			at = best;
		}
	}

	#swap(a: number, b: number): void {
		[this.#items[a], this.#items[b]] = [this.#items[b]!, this.#items[a]!];
	}
}

function before(a: Valued, b: Valued): boolean {
	return a.value > b.value || (a.value === b.value && a.expert < b.expert);
}
