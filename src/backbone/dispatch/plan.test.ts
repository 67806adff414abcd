import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Holder, type PlannedDispatch, type PlanRequest, planDispatches } from "./plan.ts";

interface TestHolder extends Holder {
	readonly name: string;
	readonly holds: ReadonlySet<number>;
}

const rowBytes = 256;

const holderArbitrary = (experts: number): fc.Arbitrary<Omit<TestHolder, "name">> =>
	fc.record({
		floorMs: fc.integer({ min: 0, max: 300 }),
		bytesPerMs: fc.integer({ min: 1, max: 100_000 }),
		backlogBytes: fc.integer({ min: 0, max: 1_000_000 }),
		rowsMax: fc.integer({ min: 1, max: 8 }),
		messageBytesMax: fc.integer({ min: 1, max: 20 * rowBytes }),
		holds: fc.uniqueArray(fc.nat(experts - 1), { maxLength: experts }).map((held) => new Set(held)),
	});

/** Requests of up to 12 rows with topK distinct experts each, some of whose pairs are to be placed. */
const requestArbitrary: fc.Arbitrary<PlanRequest<TestHolder>> = fc
	.record({ topK: fc.integer({ min: 1, max: 4 }), experts: fc.integer({ min: 4, max: 12 }) })
	.chain(({ topK, experts }) =>
		fc
			.record({
				rows: fc.array(fc.uniqueArray(fc.nat(experts - 1), { minLength: topK, maxLength: topK }), { maxLength: 12 }),
				holders: fc.array(holderArbitrary(experts), { maxLength: 5 }),
				skipped: fc.uniqueArray(fc.nat(47), { maxLength: 6 }),
				wholeRows: fc.boolean(),
				pairsMax: fc.integer({ min: topK, max: 40 }),
			})
			.map(({ rows, holders, skipped, wholeRows, pairsMax }) => {
				const named = holders.map((holder, index) => ({ ...holder, name: `w${index}` }));
				const pairs = rows.flat().flatMap((_, index) => (skipped.includes(index) ? [] : [index]));
				return {
					rowCount: rows.length,
					rowIndex: Uint16Array.from(rows.flatMap((row, index) => row.map(() => index))),
					expert: Uint16Array.from(rows.flat()),
					pairs,
					topK,
					rowBytes,
					wholeRows,
					pairsMax,
					holders: (expert: number) => named.filter((holder) => holder.holds.has(expert)),
				};
			}),
	);

function messageBytes(dispatch: PlannedDispatch<TestHolder>): number {
	return Math.max(dispatch.rows.length, dispatch.mode === 1 ? 0 : dispatch.pairs.length) * rowBytes;
}

describe("planDispatches()", () => {
	test("places every pair exactly once, with somebody who holds it, or says that nobody does", () => {
		fc.assert(
			fc.property(requestArbitrary, (request) => {
				const plan = planDispatches(request);
				const placed = plan.dispatches.flatMap((dispatch) => dispatch.pairs);
				expect([...placed, ...plan.unplaced].sort((a, b) => a - b)).toEqual([...request.pairs]);
				for (const dispatch of plan.dispatches) {
					for (const pair of dispatch.pairs) expect(dispatch.holder.holds.has(request.expert[pair]!)).toBe(true);
				}
				for (const pair of plan.unplaced) expect(request.holders(request.expert[pair]!)).toEqual([]);
			}),
		);
	});

	test("keeps pairs in order, rows distinct and every message within its limits unless it is one row", () => {
		fc.assert(
			fc.property(requestArbitrary, (request) => {
				for (const dispatch of planDispatches(request).dispatches) {
					const ascending = [...dispatch.pairs].sort((a, b) => a - b);
					expect(dispatch.pairs).toEqual(ascending);
					const rows = [...new Set(dispatch.pairs.map((pair) => request.rowIndex[pair]!))];
					expect(dispatch.rows).toEqual(rows);
					expect(dispatch.rows.length).toBeLessThanOrEqual(dispatch.holder.rowsMax);
					if (dispatch.rows.length === 1) continue;
					expect(dispatch.pairs.length).toBeLessThanOrEqual(request.pairsMax);
					expect(messageBytes(dispatch)).toBeLessThanOrEqual(dispatch.holder.messageBytesMax);
				}
			}),
		);
	});

	test("uses mode 1 only for rows with all their pairs, and only when it may", () => {
		fc.assert(
			fc.property(requestArbitrary, (request) => {
				for (const dispatch of planDispatches(request).dispatches.filter(({ mode }) => mode === 1)) {
					expect(request.wholeRows).toBe(true);
					expect(dispatch.pairs.length).toBe(dispatch.rows.length * request.topK);
				}
			}),
		);
	});

	test("gives the same plan for the same request", () => {
		fc.assert(
			fc.property(requestArbitrary, (request) => {
				expect(planDispatches(request)).toEqual(planDispatches(request));
			}),
		);
	});

	const worker = (name: string, facts: Partial<TestHolder> = {}): TestHolder => ({
		name,
		holds: new Set([0, 1, 2, 3]),
		floorMs: 10,
		bytesPerMs: 100,
		backlogBytes: 0,
		rowsMax: 4096,
		messageBytesMax: 1 << 20,
		...facts,
	});
	const oneRow = (holders: TestHolder[], rows: number, wholeRows: boolean): PlanRequest<TestHolder> => ({
		rowCount: rows,
		rowIndex: Uint16Array.from({ length: rows * 2 }, (_, index) => index >> 1),
		expert: Uint16Array.from({ length: rows * 2 }, (_, index) => index % 2),
		pairs: Array.from({ length: rows * 2 }, (_, index) => index),
		topK: 2,
		rowBytes,
		wholeRows,
		pairsMax: 32_768,
		holders: (expert) => holders.filter((holder) => holder.holds.has(expert)),
	});

	test("spreads rows evenly over equal replicas", () => {
		const plan = planDispatches(oneRow([worker("a"), worker("b")], 100, true));
		expect(plan.dispatches.map(({ mode, rows }) => [mode, rows.length])).toEqual([
			[1, 50],
			[1, 50],
		]);
	});

	test("prefers the replica that will be done first", () => {
		const plan = planDispatches(oneRow([worker("far", { floorMs: 300 }), worker("near")], 3, false));
		expect(plan.dispatches.map(({ holder }) => holder.name)).toEqual(["near"]);
		const busy = worker("busy", { backlogBytes: 1_000_000 });
		expect(planDispatches(oneRow([busy, worker("idle")], 3, false)).dispatches[0]!.holder.name).toBe("idle");
	});

	test("does not give whole rows to a worker so slow that several others would be sooner", () => {
		const slow = worker("slow", { floorMs: 900 });
		const fast = [worker("a", { holds: new Set([0]) }), worker("b", { holds: new Set([1]) })];
		const plan = planDispatches(oneRow([slow, ...fast], 1, true));
		expect(plan.dispatches.map(({ holder, mode }) => [holder.name, mode])).toEqual([
			["a", 0],
			["b", 0],
		]);
	});
});
