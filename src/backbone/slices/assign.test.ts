import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AssignableWorker, type AssignInput, planAssignments } from "./assign.ts";

const experts = 4;
const all = (count: number) => Array.from({ length: count }, (_, index) => index);
const worker = (
	name: string,
	capacity: number,
	ready: number[] = [],
	wanted: number[] | null = null,
): AssignableWorker => ({
	name,
	capacity,
	ready: new Set(ready),
	wanted: wanted === null ? null : new Set(wanted),
});

function plan(workers: AssignableWorker[], change: Partial<AssignInput> = {}): Record<string, number[]> {
	const input = { asked: all(8), experts, workers, fixed: () => 0, heat: () => 0, ...change };
	return Object.fromEntries([...planAssignments(input)].map(([name, set]) => [name, [...set].sort((a, b) => a - b)]));
}

describe("planAssignments()", () => {
	it("gives one worker everything that fits", () => {
		expect(plan([worker("a", 100)])).toEqual({ a: all(8) });
	});

	it("keeps the experts of a layer together", () => {
		expect(plan([worker("a", 4), worker("b", 4)])).toEqual({ a: [0, 1, 2, 3], b: [4, 5, 6, 7] });
	});

	it("covers the hottest where there is no room for all", () => {
		expect(plan([worker("a", 3)], { heat: (expert) => expert })).toEqual({ a: [5, 6, 7] });
	});

	it("leaves out what others hold by wish, and replicates the hottest with the room left", () => {
		const fixed = (expert: number) => (expert < 6 ? 1 : 0);
		expect(plan([worker("a", 3)], { fixed, heat: (expert) => (expert === 2 ? 9 : 0) })).toEqual({ a: [2, 6, 7] });
	});

	it("gives the hottest several copies before the cold a second one", () => {
		const workers = ["a", "b", "c", "d"].map((name) => worker(name, 3));
		const held = Object.values(plan(workers, { heat: (expert) => (expert === 0 ? 100 : 1) })).flat();
		expect(held.filter((expert) => expert === 0)).toHaveLength(3);
		expect(new Set(held).size).toBe(8);
	});

	it("does not move what is held when a worker joins", () => {
		const held = plan([worker("a", 6)]).a!;
		const joined = plan([worker("a", 6, held, held), worker("b", 6)]);
		expect(joined.a).toEqual(held);
		expect(new Set([...joined.a!, ...joined.b!])).toEqual(new Set(all(8)));
	});

	it("gives up a replica for what nobody holds, never the last copy that serves", () => {
		const [a, b] = [worker("a", 4, [0, 1, 2, 3], [0, 1, 2, 3]), worker("b", 4, [0, 1, 4, 5], [0, 1, 4, 5])];
		const held = plan([a, b]);
		expect(new Set([...held.a!, ...held.b!])).toEqual(new Set(all(8)));
	});

	it("does not count a copy that is only on its way as a reason to drop the one that serves", () => {
		const a = worker("a", 2, [0, 1], [0, 1]);
		const b = worker("b", 2, [], [0, 1]);
		const { a: kept } = plan([a, b], { asked: all(4) });
		expect(kept).toEqual([0, 1]);
	});

	it("moves a replica to a much hotter expert, a few at a time", () => {
		const held = all(8);
		const workers = [worker("a", 8, held, held), worker("b", 4, [4, 5, 6, 7], [4, 5, 6, 7])];
		const { b } = plan(workers, { heat: (expert) => (expert === 0 ? 1000 : 1) });
		expect(b).toContain(0);
		expect(b!.filter((expert) => expert >= 4)).toHaveLength(3);
	});

	it("is steady: planned again once everything is ready, nothing changes but a few swaps", () => {
		const heat = (expert: number) => (expert * 7919) % 13;
		const workers = [worker("a", 5), worker("b", 4), worker("c", 3)];
		const first = plan(workers, { heat });
		const again = plan(
			workers.map(({ name, capacity }) => worker(name, capacity, first[name]!, first[name]!)),
			{ heat },
		);
		expect(again).toEqual(first);
	});

	it("never plans beyond a capacity, keeps whatever only one serves, and covers all where there is room", () => {
		const scene = fc.record({
			layers: fc.integer({ min: 1, max: 4 }),
			capacities: fc.array(fc.nat(12), { minLength: 1, maxLength: 5 }),
			ready: fc.array(fc.tuple(fc.nat(4), fc.nat(15)), { maxLength: 30 }),
			heats: fc.array(fc.nat(50), { minLength: 16, maxLength: 16 }),
		});
		fc.assert(
			fc.property(scene, ({ layers, capacities, ready, heats }) => {
				const asked = all(layers * experts);
				const workers = capacities.map((capacity, index) => {
					const own = [...new Set(ready.filter(([at]) => at === index).map(([, expert]) => expert))]
						.filter((expert) => expert < asked.length)
						.slice(0, capacity);
					return worker(String(index), capacity, own, own);
				});
				const held = plan(workers, { asked, heat: (expert) => heats[expert]! });
				const covered = new Set(Object.values(held).flat());
				for (const { name, capacity, ready } of workers) {
					expect(held[name]!.length).toBeLessThanOrEqual(capacity);
					for (const expert of ready) expect(covered.has(expert)).toBe(true);
				}
				const room = capacities.reduce((sum, capacity) => sum + capacity, 0);
				expect(covered.size).toBe(Math.min(asked.length, room));
			}),
		);
	});

	it("plans 12,544 experts for 40 workers in well under a second", () => {
		const asked = all(49 * 256);
		const workers = all(40).map((index) => worker(String(index), 1000));
		const startMs = performance.now();
		const held = planAssignments({ asked, experts: 256, workers, fixed: () => 0, heat: (expert) => expert % 97 });
		expect(performance.now() - startMs).toBeLessThan(5_000);
		expect(new Set([...held.values()].flatMap((set) => [...set])).size).toBe(asked.length);
		expect([...held.values()].every(({ size }) => size === 1000)).toBe(true);
	});
});
