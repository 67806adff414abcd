import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { databasesUnderTest } from "../../test/support/databases.ts";
import { fakeClock } from "../../test/support/fake-clock.ts";
import {
	originOf,
	receiptChain,
	submissionOf,
	type TestReceipt,
	type TestSession,
	testSession,
} from "../../test/support/receipts.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { genesisHash, type LedgerEntry } from "./entry.ts";
import { type HubStore, openHubStore } from "./hub-store.ts";
import type { WorkerAnswer } from "./submission.ts";

describe.each(databasesUnderTest("hub"))("openHubStore() on $name", ({ name, location, skip, clean }) => {
	const stores: HubStore[] = [];
	afterAll(async () => {
		for (const store of stores) await store.close();
		await clean();
	});
	let seed = 1;
	async function open(): Promise<HubStore> {
		const store = await openHubStore(await location(), { clock: fakeClock(), random: seededRandom(seed++) });
		stores.push(store);
		return store;
	}
	const accept = (
		hub: HubStore,
		s: TestSession,
		receipt: TestReceipt,
		answer?: WorkerAnswer,
		metered: bigint | null = null,
	) => hub.acceptReceipt(submissionOf(s, receipt, answer), originOf(s, metered));
	const entries = async (hub: HubStore): Promise<readonly LedgerEntry[]> => {
		const page = await hub.entriesAfter(0, genesisHash, 1000);
		return "diverged" in page ? [] : page.entries;
	};

	it.skipIf(skip)("posts a receipt, and answers the same receipt again with the same entry", async () => {
		const hub = await open();
		const s = testSession(hub.ledgerId);
		const [receipt] = receiptChain(s, [104]);
		const verdict = await accept(hub, s, receipt!);
		expect(verdict).toEqual({ status: "confirmed", entry: 1 });
		expect(await accept(hub, s, receipt!)).toEqual(verdict);
		const [entry, ...others] = await entries(hub);
		expect(others).toEqual([]);
		expect(entry).toMatchObject({
			number: 1,
			kind: "receipt",
			pairs: 104n,
			servedBytes: 1_277_952n,
			paidBytes: 1_277_952n,
			status: "confirmed",
			reason: "unmetered",
			rate: 7_000_000n,
		});
		expect(await hub.checkChain()).toEqual([]);
	});

	it.skipIf(skip)("credits an unconfirmed receipt, and a later countersignature only upgrades it", async () => {
		const hub = await open();
		const s = testSession(hub.ledgerId);
		const [receipt] = receiptChain(s, [10]);
		expect(await accept(hub, s, receipt!, null)).toEqual({ status: "unconfirmed", entry: 1 });
		expect(await accept(hub, s, receipt!)).toEqual({ status: "confirmed", entry: 1 });
		expect(await accept(hub, s, receipt!, null)).toEqual({ status: "confirmed", entry: 1 });
		expect((await entries(hub)).map((entry) => [entry.kind, entry.paidBytes])).toEqual([
			["receipt", 122_880n],
			["confirm", 0n],
		]);
	});

	it.skipIf(skip)("credits the lower of two figures", async () => {
		const hub = await open();
		for (const [worker, claimed, paid] of [
			["modest", 4, 4],
			["greedy", 99, 10],
		] as const) {
			const s = testSession(hub.ledgerId, { worker });
			const [receipt] = receiptChain(s, [10]);
			const verdict = await accept(hub, s, receipt!, { pairs: claimed, digest: new Uint8Array(32) });
			expect(verdict.status).toBe("disputed");
			expect((await entries(hub)).at(-1)).toMatchObject({ paidBytes: BigInt(paid * 12_288), reason: "disputed" });
		}
	});

	it.skipIf(skip)("pays nobody for work done for oneself", async () => {
		const hub = await open();
		const own = testSession(hub.ledgerId, { worker: "backbone" });
		const sameWallet = testSession(hub.ledgerId, { wallet: "backbone" });
		for (const s of [own, sameWallet]) await accept(hub, s, receiptChain(s, [10])[0]!);
		expect((await entries(hub)).map((entry) => [entry.paidBytes, entry.reason])).toEqual([
			[0n, "self"],
			[0n, "self"],
		]);
	});

	it.skipIf(skip)("keeps another receipt of a number as evidence and credits the first alone", async () => {
		const hub = await open();
		const s = testSession(hub.ledgerId);
		const [receipt] = receiptChain(s, [10]);
		const [rival] = receiptChain(s, [11]);
		await accept(hub, s, receipt!);
		expect(await accept(hub, s, rival!)).toEqual({ status: "conflict", entry: 2 });
		expect(await accept(hub, s, rival!)).toEqual({ status: "conflict", entry: 2 });
		expect((await entries(hub)).map((entry) => entry.paidBytes)).toEqual([122_880n, 0n]);
		const kept = await hub.conflicts();
		expect(kept.map((conflict) => [conflict.entry, conflict.body])).toEqual([[2, rival!.body]]);
	});

	it.skipIf(skip)("refuses what is forged, foreign or does not continue its session", async () => {
		const hub = await open();
		const s = testSession(hub.ledgerId);
		const [receipt, second] = receiptChain(s, [10, 20]);
		const good = submissionOf(s, receipt!);
		const refusals = [
			["bad_receipt", hub.acceptReceipt({ ...good, body: Buffer.from("no receipt") }, originOf(s))],
			["bad_signature", hub.acceptReceipt({ ...good, signature: new Uint8Array(64) }, originOf(s))],
			["bad_signature", hub.acceptReceipt({ ...good, answer: { signature: good.signature } }, originOf(s))],
			["not_listed", hub.acceptReceipt(good, originOf(testSession(hub.ledgerId, { backbone: "another" })))],
			["other_ledger", accept(hub, s, receiptChain({ ...s, ledgerId: "00".repeat(16) }, [10])[0]!)],
			["unknown_policy", accept(hub, s, receiptChain(s, [10], { policy: 99 })[0]!)],
			[
				"bad_signature",
				accept(hub, s, receiptChain(s, [10], { payout: testSession(hub.ledgerId, { wallet: "thief" }).payout })[0]!),
			],
		] as const;
		for (const [code, verdict] of refusals) expect(await verdict).toMatchObject({ status: "refused", code });
		await accept(hub, s, receipt!);
		const overlapping = receiptChain(s, [10, 20], { from: 5, to: 20 })[1]!;
		expect(await accept(hub, s, overlapping)).toMatchObject({ status: "refused", code: "broken_chain" });
		const follower = receiptChain(s, [11, 20])[1]!;
		expect(await accept(hub, s, follower)).toMatchObject({ status: "refused", code: "broken_chain" });
		expect(await accept(hub, s, second!)).toEqual({ status: "confirmed", entry: 2 });
	});

	it.skipIf(skip)("bounds receipts by the relay's own bytes, summed over its receipts", async () => {
		const hub = await open();
		const s = testSession(hub.ledgerId, { relay: "relay-1" });
		const [first, second, third] = receiptChain(s, [100, 100, 1]);
		// Two receipts of 100 pairs are 2,457,600 served bytes; with topK 8 they need 153,600 bytes from the worker.
		const count = { relay: "relay-1", worker: originOf({ ...s, backbone: s.worker }).backbone, bytesToWorker: 0n };
		await hub.recordRelays([{ ...count, bytesFromWorker: 153_599n, closed: true }]);
		expect(await accept(hub, s, first!)).toMatchObject({ status: "confirmed" });
		expect(await accept(hub, s, second!)).toMatchObject({ status: "refused", code: "implausible" });
		await hub.recordRelays([{ ...count, bytesFromWorker: 153_600n, closed: true }]);
		expect(await accept(hub, s, second!)).toMatchObject({ status: "confirmed" });
		expect(await accept(hub, s, third!)).toMatchObject({ status: "refused", code: "implausible" });
		expect(await accept(hub, s, third!, undefined, 154_400n)).toMatchObject({ status: "confirmed" });
		expect((await entries(hub)).every((entry) => entry.reason === null)).toBe(true);
		const stranger = testSession(hub.ledgerId, { relay: "relay-1", worker: "stranger" });
		expect(await accept(hub, stranger, receiptChain(stranger, [1])[0]!)).toMatchObject({ code: "implausible" });
	});

	it.skipIf(skip)(
		"credits what a relay carried that was cut off by the hub's death: what is stored of it is too little",
		async () => {
			const hub = await open();
			const s = testSession(hub.ledgerId, { relay: "relay-1" });
			const [first, second] = receiptChain(s, [100, 100]);
			const { backbone: worker } = originOf({ ...s, backbone: s.worker });
			await hub.recordRelays([{ relay: "relay-1", worker, bytesToWorker: 0n, bytesFromWorker: 10n, closed: false }]);
			expect(await accept(hub, s, first!, undefined, 10n)).toMatchObject({ status: "refused", code: "implausible" });
			expect(await accept(hub, s, first!)).toMatchObject({ status: "confirmed" });
			expect(await accept(hub, s, second!)).toMatchObject({ status: "confirmed" });
			expect((await entries(hub)).map((entry) => entry.reason)).toEqual(["unmetered", "unmetered"]);
			const stranger = testSession(hub.ledgerId, { relay: "relay-1", worker: "stranger" });
			expect(await accept(hub, stranger, receiptChain(stranger, [1])[0]!)).toMatchObject({ code: "implausible" });
		},
	);

	it.skipIf(skip)("pages its entries, and says diverged for a cursor it does not have", async () => {
		const hub = await open();
		const s = testSession(hub.ledgerId);
		for (const receipt of receiptChain(s, [1, 2, 3])) await accept(hub, s, receipt);
		const first = await hub.entriesAfter(0, genesisHash, 2);
		if ("diverged" in first) throw new Error("diverged");
		expect(first).toMatchObject({ ledgerId: hub.ledgerId, head: 3 });
		expect(first.entries.map((entry) => entry.number)).toEqual([1, 2]);
		const rest = await hub.entriesAfter(2, first.entries[1]!.hash, 2);
		expect(rest).toMatchObject({ head: 3, entries: [{ number: 3 }] });
		expect(await hub.entriesAfter(2, first.entries[0]!.hash, 2)).toEqual({
			diverged: { after: 2, head: 3, hash: first.entries[1]!.hash },
		});
		expect(await hub.entriesAfter(4, genesisHash, 2)).toEqual({ diverged: { after: 4, head: 3, hash: null } });
	});

	it.skipIf(skip)("credits the same whatever the order, duplication and grouping of receipt messages", async () => {
		const sessions = [1, 2, 3].map((n) => ({
			worker: `worker ${n}`,
			pairs: Array.from({ length: 4 }, (_, i) => n * 100 + i),
		}));
		const expected = new Map<string, bigint>();
		const messages = fc.array(
			fc.record({ session: fc.nat(2), number: fc.nat(3), countersigned: fc.boolean(), wait: fc.boolean() }),
			{ maxLength: 30 },
		);
		await fc.assert(
			fc.asyncProperty(messages, async (noise) => {
				const hub = await open();
				const chains = sessions.map(({ worker, pairs }) => {
					const s = testSession(hub.ledgerId, { worker, session: `${worker} ${seed}` });
					return { s, receipts: receiptChain(s, pairs) };
				});
				// The noise first, then every receipt once more, backwards: each must have been credited exactly once.
				const all = chains.flatMap((_, session) =>
					[3, 2, 1, 0].map((number) => ({ session, number, countersigned: true, wait: false })),
				);
				const running: Promise<unknown>[] = [];
				for (const { session, number, countersigned, wait } of [...noise, ...all]) {
					const { s, receipts } = chains[session]!;
					const verdict = accept(hub, s, receipts[number]!, countersigned ? undefined : null);
					running.push(verdict.then((answer) => expect(answer.status).not.toBe("refused")));
					if (wait) await verdict;
				}
				await Promise.all(running);
				const totals = await hub.totals(0, null);
				const mine = new Map(totals.map(({ wallet, bytes }) => [wallet, bytes]));
				for (const { s, receipts } of chains) {
					const wallet = originOf({ ...s, backbone: { publicKey: s.payout, sign: s.worker.sign } }).backbone;
					expected.set(
						wallet,
						receipts.reduce((sum, { receipt }) => sum + receipt.servedBytes, 0n),
					);
				}
				expect(mine).toEqual(expected);
				expect(await hub.checkChain()).toEqual([]);
			}),
			{ numRuns: name === "SQLite" ? 15 : 4 },
		);
	});

	// Two stores in one thread would wait for each other on SQLite: hub-ledger.test.ts has two threads.
	it.skipIf(skip || name === "SQLite")(
		"numbers the entries of two hubs on one database without a gap, as they commit",
		async () => {
			const where = await location();
			const parts = { clock: fakeClock(), random: seededRandom(seed++) };
			const hubs = [await openHubStore(where, parts), await openHubStore(where, parts)];
			stores.push(...hubs);
			const reader = await openHubStore(where, parts);
			stores.push(reader);
			const posting = hubs.flatMap((hub, i) =>
				[1, 2, 3, 4].map(async (n) => {
					const s = testSession(hub.ledgerId, { worker: `worker ${i} ${n}` });
					for (const receipt of receiptChain(s, [1, 2, 3, 4, 5])) await accept(hub, s, receipt);
				}),
			);
			let ended = false;
			const posted = Promise.all(posting).then(() => {
				ended = true;
			});
			let cursor = { after: 0, hash: genesisHash };
			for (let last = false; !last; ) {
				last = ended;
				const page = await reader.entriesAfter(cursor.after, cursor.hash, 7);
				if ("diverged" in page) throw new Error("the reader's past changed");
				for (const entry of page.entries) {
					expect(entry.number).toBe(cursor.after + 1);
					cursor = { after: entry.number, hash: entry.hash };
				}
				if (page.entries.length > 0) last = false;
			}
			await posted;
			expect(cursor.after).toBe(40);
			expect(await reader.checkChain()).toEqual([]);
		},
	);
});
