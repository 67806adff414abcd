import { describe, expect, it } from "vitest";
import { readHistory } from "./history.ts";
import type { LocalReceipt } from "./local-receipts.ts";
import { reconcile } from "./reconcile.ts";
import type { GatewayCredit, GatewayPayout } from "./wallet-api.ts";

const local = (receipt: string, changes: Partial<LocalReceipt> = {}): LocalReceipt => ({
	receipt,
	backbone: "backbone",
	worker: "worker",
	payout: "ann",
	session: "session",
	number: 1,
	pairs: 1n,
	servedBytes: 1_000_000n,
	rate: 7_000_000n,
	countersigned: true,
	atMs: 1,
	...changes,
});
const credit = (receipt: string, changes: Partial<GatewayCredit> = {}): GatewayCredit => ({
	entry: 1,
	kind: "receipt",
	receipt,
	worker: "worker",
	backbone: "backbone",
	session: "session",
	receiptNumber: 1,
	servedBytes: 1_000_000n,
	paidBytes: 1_000_000n,
	rate: 7_000_000n,
	nano: 7_000_000n,
	status: "confirmed",
	reason: null,
	unpaid: {},
	atMs: 10,
	...changes,
});
async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
	yield* items;
}
const compare = (mine: LocalReceipt[], theirs: GatewayCredit[], cursorLag = 0) =>
	reconcile("ann", each(mine), { credits: each(theirs), cursorLag });

describe("reconcile()", () => {
	it("has nothing to say where both agree", async () => {
		const result = await compare(
			[local("a"), local("b"), local("z", { payout: "bob" })],
			[
				credit("a", { unpaid: { late: 2 } }),
				credit("b", { unpaid: { late: 1, wrong: 3 } }),
				credit("b", { kind: "confirm", paidBytes: 0n }),
			],
		);
		expect(result).toEqual({
			address: "ann",
			balanced: true,
			agreed: 2,
			differences: [],
			unpaid: { late: 3, wrong: 3 },
			units: { local: "2", credited: "2" },
		});
	});

	it.each<[string, LocalReceipt[], GatewayCredit[], number, boolean]>([
		[
			"disputed",
			[local("a")],
			[credit("a", { paidBytes: 500_000n, reason: "disputed", status: "disputed" })],
			0,
			false,
		],
		["self", [local("a")], [credit("a", { paidBytes: 0n, reason: "self" })], 0, false],
		["conflict", [local("a")], [credit("a", { kind: "conflict", paidBytes: 0n, reason: "conflict" })], 0, false],
		["not_polled", [local("a")], [], 5, false],
		["not_at_hub", [local("a")], [], 0, false],
		["not_here", [], [credit("a")], 0, true],
		["bytes", [local("a")], [credit("a", { paidBytes: 7n })], 0, false],
	])("explains %s", async (reason, mine, theirs, cursorLag, balanced) => {
		const result = await compare(mine, theirs, cursorLag);
		expect(result.differences).toMatchObject([{ receipt: "a", session: "session", number: 1, reason }]);
		expect(result.differences[0]!.explanation).not.toBe("");
		expect(result.balanced).toBe(balanced);
	});

	it("takes an unmetered receipt for what it is: paid", async () => {
		expect(await compare([local("a")], [credit("a", { reason: "unmetered" })])).toMatchObject({
			balanced: true,
			agreed: 1,
		});
	});
});

it("readHistory() tells credits, claims and payments in order of time", async () => {
	const payout: GatewayPayout = {
		id: "ann.1",
		wallet: "ann",
		number: 1,
		nano: 5n,
		address: "exchange",
		state: "paid",
		reference: "tx 1",
		reason: null,
		claimedAtMs: 20,
		exportedAtMs: 25,
		settledAtMs: 40,
	};
	const failed: GatewayPayout = {
		...payout,
		id: "ann.2",
		state: "failed",
		reference: null,
		reason: "frozen",
		claimedAtMs: 21,
		settledAtMs: 41,
	};
	const open: GatewayPayout = {
		...payout,
		id: "ann.3",
		state: "claimed",
		reference: null,
		claimedAtMs: 50,
		settledAtMs: null,
	};
	const credits = [
		credit("a", { status: "unconfirmed" }),
		credit("b", { atMs: 30, paidBytes: 0n, nano: 0n, reason: "self" }),
		credit("a", { atMs: 45, kind: "confirm", paidBytes: 0n, nano: 0n }),
	];
	const lines = await readHistory(each(credits), [open, failed, payout]);
	expect(lines.map(({ atMs, kind, nano, reference, note }) => [atMs, kind, nano, reference, note])).toEqual([
		[10, "credit", "7000000", "a", "unconfirmed"],
		[20, "claimed", "5", "ann.1", "exchange"],
		[21, "claimed", "5", "ann.2", "exchange"],
		[30, "unpaid", "0", "b", "self"],
		[40, "paid", "5", "tx 1", "exchange"],
		[41, "failed", "5", "ann.2", "frozen"],
		[45, "confirmed", "0", "a", null],
		[50, "claimed", "5", "ann.3", "exchange"],
	]);
	expect(lines[0]!.kvr).toBe("0.007");
});
