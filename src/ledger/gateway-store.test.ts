import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { databasesUnderTest } from "../../test/support/databases.ts";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { claimOf, pageOf, type TestWork, testLedgerId, walletNamed } from "../../test/support/ledger-pages.ts";
import { keyNamed } from "../../test/support/receipts.ts";
import { checkLedgers } from "./check.ts";
import type { EntryPage } from "./entry.ts";
import type { SignedClaim } from "./gateway-claims.ts";
import { type GatewayStore, openGatewayStore } from "./gateway-store.ts";

const ledgerId = testLedgerId;
const walletOf = walletNamed;
const slice = (page: EntryPage, from: number, to: number): EntryPage => ({
	...page,
	entries: page.entries.slice(from, to),
});

describe.each(databasesUnderTest("gateway"))("openGatewayStore() on $name", ({ name, location, skip, clean }) => {
	const stores: GatewayStore[] = [];
	afterAll(async () => {
		for (const store of stores) await store.close();
		await clean();
	});
	async function open(claimMinNano?: bigint): Promise<GatewayStore> {
		const options = claimMinNano === undefined ? {} : { claimMinNano };
		const store = await openGatewayStore(await location(), { clock: fakeClock(), ...options });
		stores.push(store);
		return store;
	}
	const consistent = async (store: GatewayStore) => {
		const check = checkLedgers(await store.check(), null);
		expect(check.differences).toEqual([]);
		return check;
	};

	it.skipIf(skip)("credits the reference example, once, however often the page comes", async () => {
		const store = await open();
		const page = pageOf([{ wallet: walletOf("ann"), bytes: 1_277_952n }]);
		const cursor = await store.credit(page);
		expect(cursor).toEqual({ ledgerId, after: 1, hash: page.entries[0]!.hash });
		expect(await store.credit(page)).toEqual(cursor);
		expect(await store.cursor()).toEqual(cursor);
		expect(await store.balance(walletOf("ann"))).toMatchObject({
			pending: 8_945_664n,
			claimed: 0n,
			paid: 0n,
			servedBytes: 1_277_952n,
			remainder: 0n,
			cursorLag: 0,
			ledgerId,
			lastReceipt: { entry: 1, nano: 8_945_664n, status: "unconfirmed", unpaid: { late: 2 } },
		});
		await consistent(store);
	});

	it.skipIf(skip)("knows nothing of a wallet that never worked", async () => {
		const store = await open();
		expect(await store.balance(walletOf("nobody"))).toMatchObject({
			pending: 0n,
			lastReceipt: null,
			claims: 0,
			ledgerId: null,
		});
	});

	it.skipIf(skip)("upgrades a confirmed receipt, shows a conflict, and credits neither again", async () => {
		const store = await open();
		const receipt = "cd".repeat(32);
		const wallet = walletOf("ann");
		await store.credit(
			pageOf([
				{ wallet, bytes: 1000n, receipt },
				{ wallet, bytes: 1000n, receipt, kind: "confirm" },
				{ wallet, bytes: 1000n, kind: "conflict" },
			]),
		);
		const lines = await store.credits(wallet, 0, 10);
		expect(lines.map((line) => [line.kind, line.status, line.nano, line.reason])).toEqual([
			["receipt", "confirmed", 7000n, null],
			["confirm", "confirmed", 0n, null],
			["conflict", "conflict", 0n, "conflict"],
		]);
		expect(await store.credits(wallet, 1, 1)).toMatchObject([{ entry: 2 }]);
		await consistent(store);
	});

	it.skipIf(skip)("credits nothing of a page that does not continue what was credited", async () => {
		const store = await open();
		const wallet = walletOf("ann");
		const page = pageOf([
			{ wallet, bytes: 10n },
			{ wallet, bytes: 20n },
			{ wallet, bytes: 30n },
		]);
		await store.credit(slice(page, 0, 1));
		const before = await store.balance(wallet);
		const forged = { ...page.entries[2]!, paidBytes: 3_000n };
		const other = pageOf([
			{ wallet, bytes: 11n },
			{ wallet, bytes: 20n },
		]);
		for (const bad of [
			slice(page, 2, 3),
			{ ...page, entries: [page.entries[1]!, forged] },
			slice(other, 1, 2),
			{ ...slice(page, 1, 3), ledgerId: "ff".repeat(16) },
		]) {
			await expect(store.credit(bad)).rejects.toMatchObject({ code: "diverged" });
		}
		expect(await store.balance(wallet)).toEqual(before);
		await store.credit(slice(page, 1, 3));
		expect((await store.balance(wallet)).pending).toBe(420n);
		await consistent(store);
	});

	it.skipIf(skip)("sums to the same over any split of the work and of the pages", async () => {
		const works = fc.array(
			fc.record({ wallet: fc.constantFrom("ann", "bob", "cid"), bytes: fc.bigInt({ min: 0n, max: 10n ** 9n }) }),
			{ minLength: 1, maxLength: 20 },
		);
		await fc.assert(
			fc.asyncProperty(
				works,
				fc.array(fc.nat(20)),
				fc.constantFrom(7_000_000n, 333n, 1n),
				async (split, cuts, rate) => {
					const store = await open();
					const page = pageOf(split.map(({ wallet, bytes }) => ({ wallet: walletOf(wallet), bytes, rate })));
					const bounds = [...new Set([0, ...cuts.filter((cut) => cut < split.length), split.length])].sort(
						(a, b) => a - b,
					);
					for (let i = 1; i < bounds.length; i++) await store.credit(slice(page, bounds[i - 1]!, bounds[i]!));
					for (const name of ["ann", "bob", "cid"]) {
						const bytes = split.filter((work) => work.wallet === name).reduce((sum, work) => sum + work.bytes, 0n);
						const { pending, remainder } = await store.balance(walletOf(name));
						expect([pending, remainder]).toEqual([(bytes * rate) / 1_000_000n, (bytes * rate) % 1_000_000n]);
					}
					await consistent(store);
				},
			),
			{ numRuns: name === "SQLite" ? 12 : 4 },
		);
	});

	it.skipIf(skip)("takes a claim from pending to claimed to paid, each step once", async () => {
		const store = await open();
		const wallet = walletOf("ann");
		await store.credit(pageOf([{ wallet, bytes: 1_000_000n }]));
		const claim = claimOf("ann", 1, 4_000_000n);
		const claimed = await store.claim(claim);
		expect(claimed).toMatchObject({
			id: `${wallet}.1`,
			state: "claimed",
			nano: 4_000_000n,
			address: walletOf("ann's exchange"),
		});
		expect(await store.claim(claim)).toEqual(claimed);
		expect(await store.balance(wallet)).toMatchObject({
			pending: 3_000_000n,
			claimed: 4_000_000n,
			paid: 0n,
			claims: 1,
		});
		const [exported, ...others] = await store.exportPayouts();
		expect(others).toEqual([]);
		expect(await store.exportPayouts()).toEqual([exported]);
		expect(exported!.exportedAtMs).not.toBeNull();
		const paid = await store.confirmPayout(exported!.id, "tx-1");
		expect(await store.confirmPayout(exported!.id, "tx-1")).toEqual(paid);
		expect(await store.exportPayouts()).toEqual([]);
		await expect(store.confirmPayout(exported!.id, "tx-2")).rejects.toMatchObject({ code: "payment" });
		await expect(store.releasePayout(exported!.id, "lost")).rejects.toMatchObject({ code: "payment" });
		expect(await store.balance(wallet)).toMatchObject({ pending: 3_000_000n, claimed: 0n, paid: 4_000_000n });
		expect(await store.payouts(wallet)).toEqual([paid]);
		await consistent(store);
	});

	it.skipIf(skip)("puts a released payout back to pending", async () => {
		const store = await open();
		const wallet = walletOf("ann");
		await store.credit(pageOf([{ wallet, bytes: 1_000n }]));
		const { id } = await store.claim(claimOf("ann", 1, 7_000n));
		const failed = await store.releasePayout(id, "the address is frozen");
		expect(failed).toMatchObject({ state: "failed", reason: "the address is frozen" });
		expect(await store.releasePayout(id, "again")).toEqual(failed);
		await expect(store.confirmPayout(id, "tx")).rejects.toMatchObject({ code: "payment" });
		expect(await store.balance(wallet)).toMatchObject({ pending: 7_000n, claimed: 0n, paid: 0n });
		expect(await store.claim(claimOf("ann", 2, 7_000n))).toMatchObject({ state: "claimed" });
		await consistent(store);
	});

	it.skipIf(skip)("refuses claims that are forged, replayed, foreign, too large or too small", async () => {
		const store = await open(10n);
		await store.credit(pageOf([{ wallet: walletOf("ann"), bytes: 1_000n }]));
		const good = claimOf("ann", 1, 100n);
		const refused: [string, SignedClaim][] = [
			["auth", { ...good, nano: 101n }],
			["auth", { ...good, address: keyNamed("thief").publicKey }],
			["auth", { ...good, wallet: keyNamed("bob").publicKey }],
			["payment", { ...good, ledgerId: new Uint8Array(16) }],
			["payment", claimOf("ann", 2, 100n)],
			["payment", claimOf("ann", 0, 100n)],
			["payment", claimOf("ann", 1, 7_001n)],
			["payment", claimOf("ann", 1, 9n)],
			["payment", claimOf("bob", 1, 10n)],
		];
		for (const [code, claim] of refused) await expect(store.claim(claim)).rejects.toMatchObject({ code });
		await store.claim(good);
		await expect(store.claim(claimOf("ann", 1, 200n))).rejects.toMatchObject({ code: "payment" });
		await expect(store.releasePayout("nobody.1", "")).rejects.toMatchObject({ code: "payment" });
		expect(await store.balance(walletOf("ann"))).toMatchObject({ pending: 6_900n, claimed: 100n });
		await consistent(store);
	});

	it.skipIf(skip)("keeps double entry whatever is tried, in whatever order", async () => {
		const step = fc.record({
			what: fc.constantFrom("credit", "claim", "confirm", "release", "export"),
			name: fc.constantFrom("ann", "bob"),
			number: fc.integer({ min: 1, max: 4 }),
			nano: fc.bigInt({ min: 1n, max: 4_000n }),
		});
		await fc.assert(
			fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
				const store = await open();
				const works: TestWork[] = [];
				for (const { what, name, number, nano } of steps) {
					const id = `${walletOf(name)}.${number}`;
					const wallet = walletOf(name);
					const expected = (error: { code?: string }) => expect(error.code).toBe("payment");
					if (what === "credit") {
						works.push({ wallet, bytes: nano });
						await store.credit(pageOf(works));
					} else if (what === "claim") await store.claim(claimOf(name, number, nano)).catch(expected);
					else if (what === "confirm") await store.confirmPayout(id, `tx ${id}`).catch(expected);
					else if (what === "release") await store.releasePayout(id, "why").catch(expected);
					else await store.exportPayouts();
				}
				const { all } = await consistent(store);
				expect(all.earned).toBe(works.reduce((sum, work) => sum + work.bytes * 7_000_000n, 0n));
			}),
			{ numRuns: name === "SQLite" ? 15 : 4 },
		);
	});
});
