import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { emptyDigest, extendDigest } from "../../ledger/digest-chain.ts";
import { ReceiptWindow, type Settlement, type WindowFigures } from "./receipt-window.ts";

const hash = (id: number) => new Uint8Array(32).fill(id);
const paid = (id: number, pairs = 8): Settlement => ({ kind: "paid", pairs, answerHash: hash(id) });

function take(window: ReceiptWindow): WindowFigures | null {
	const figures = window.next();
	if (figures !== null) window.taken(figures);
	return figures;
}

describe("ReceiptWindow", () => {
	test("reaches only to the last id below which all are settled", () => {
		const window = new ReceiptWindow();
		for (const id of [1, 2, 3]) window.sent(id);
		window.settle(1, paid(1));
		window.settle(3, paid(3));
		expect(take(window)).toEqual({
			from: 0,
			to: 1,
			pairs: 8,
			unpaid: [],
			digest: extendDigest(emptyDigest, 1, 8, hash(1)),
		});
		window.settle(2, { kind: "unpaid", reason: "late" });
		expect(take(window)).toMatchObject({ from: 1, to: 3, pairs: 8, unpaid: [[2, "late"]] });
		expect(take(window)).toBeNull();
		expect(window.size).toBe(0);
	});

	test("waits for audits, and pays nothing above a failed one", () => {
		const window = new ReceiptWindow();
		for (const id of [1, 2, 3]) window.sent(id);
		window.hold(2);
		for (const id of [1, 2, 3]) window.settle(id, paid(id));
		expect(take(window)).toMatchObject({ from: 0, to: 1, pairs: 8 });
		window.condemn("wrong");
		expect(take(window)).toMatchObject({
			from: 1,
			to: 3,
			pairs: 0,
			unpaid: [
				[2, "wrong"],
				[3, "wrong"],
			],
		});
	});

	test("a failed audit takes nothing that lies below every audit under way, receipted or not", () => {
		for (const receipted of [true, false]) {
			const window = new ReceiptWindow();
			for (const id of [1, 2, 3, 4, 5, 6]) window.sent(id);
			for (const id of [5, 3]) window.hold(id);
			for (const id of [1, 2, 3, 4, 5]) window.settle(id, paid(id));
			const below = receipted ? [take(window)] : [];
			// 5 is wrong, and 3 not known to be right: whatever it turns out to be, it lies above the watermark.
			expect(window.condemn("wrong")).toBe(3);
			window.release(3);
			window.settle(6, { kind: "unpaid", reason: "quarantined" });
			const windows = [...below, take(window)];
			expect(windows.reduce((sum, taken) => sum + taken!.pairs, 0)).toBe(16);
			expect(windows.flatMap((taken) => taken!.unpaid)).toEqual([
				[3, "wrong"],
				[4, "wrong"],
				[5, "wrong"],
				[6, "quarantined"],
			]);
		}
	});

	test("a dispatch is settled once: what comes later changes nothing", () => {
		const window = new ReceiptWindow();
		window.sent(1);
		window.settle(1, { kind: "unpaid", reason: "late" });
		window.settle(1, paid(1));
		window.settle(9, paid(9));
		expect(take(window)).toMatchObject({ pairs: 0, unpaid: [[1, "late"]] });
	});

	test("every paid pair is in exactly one window, whatever the order of settling and taking", () => {
		const step = fc.oneof(
			fc.nat(19).map((id) => ({ settle: id + 1 })),
			fc.constant({ settle: null }),
		);
		fc.assert(
			fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
				const window = new ReceiptWindow();
				for (let id = 1; id <= 20; id++) window.sent(id);
				const windows = steps.flatMap(({ settle }) => {
					if (settle === null) return [take(window)];
					window.settle(settle, paid(settle, settle));
					return [];
				});
				for (let id = 1; id <= 20; id++) window.settle(id, { kind: "void" });
				expect(window.open).toBe(0);
				const all = [...windows, take(window)].filter((taken) => taken !== null);
				const settled = new Set(steps.flatMap(({ settle }) => (settle === null ? [] : [settle])));
				const expected = [...settled].reduce((sum, id) => sum + id, 0);
				expect(all.reduce((sum, { pairs }) => sum + pairs, 0)).toBe(expected);
				all.forEach(({ from, to }, index) => {
					expect(to).toBeGreaterThan(from);
					if (index > 0) expect(from).toBeGreaterThanOrEqual(all[index - 1]!.to);
				});
			}),
		);
	});
});
