import { sql } from "kysely";
import { afterAll, describe, expect, it } from "vitest";
import { databasesUnderTest } from "../../test/support/databases.ts";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { originOf, receiptChain, submissionOf, testSession } from "../../test/support/receipts.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { openDatabase } from "./database.ts";
import { type HubStore, openHubStore } from "./hub-store.ts";

describe.each(databasesUnderTest("hub-check"))("checkChain() on $name", ({ location, skip, clean }) => {
	const stores: HubStore[] = [];
	afterAll(async () => {
		for (const store of stores) await store.close();
		await clean();
	});
	let seed = 1;

	it.skipIf(skip)("finds what somebody changed in its tables", async () => {
		const changes: [string, string][] = [
			["update hub_entries set paid_bytes = paid_bytes + 1 where number = 2", "entry 2 does not follow"],
			["delete from hub_entries where number = 2", "entry 2 is missing"],
			["update hub_ledger set head = 6", "the counter is at entry 6"],
			["update hub_receipts set entry = 1 where entry = 2", "is not the one of entry 1"],
			["update hub_entries set unpaid = '{' where number = 2", "entry 2 does not follow"],
			["update hub_entries set paid_bytes = 7 where number = 2", "its paid bytes is 24576, the ledger says 7"],
			["update hub_entries set payout = 'thief' where number = 2", "the ledger says thief"],
			["update hub_receipts set signature = countersign where entry = 2", "the backbone's signature does not fit"],
			["update hub_receipts set countersign = signature where entry = 2", "is not the worker's"],
			[
				"update hub_receipts set countersign = null where entry = 2",
				"status is unconfirmed, the ledger says confirmed",
			],
			["update hub_receipts set disputed = '{', countersign = null where entry = 2", "the dispute cannot be read"],
			["update hub_receipts set body = signature where entry = 2", "Cannot read the receipt"],
			["delete from hub_receipts where entry = 2", "4 entries of kind receipt, 3 kept"],
			["delete from hub_conflicts", "1 entries of kind conflict, 0 kept"],
			["update hub_conflicts set signature = body", "the evidence against receipt"],
		];
		for (const [change, found] of changes) {
			const where = await location();
			const hub = await openHubStore(where, { clock: fakeClock(), random: seededRandom(seed++) });
			stores.push(hub);
			const s = testSession(hub.ledgerId);
			for (const receipt of receiptChain(s, [1, 2, 3])) await hub.acceptReceipt(submissionOf(s, receipt), originOf(s));
			const other = testSession(hub.ledgerId, { worker: "other" });
			const [first, rival] = [receiptChain(other, [4])[0]!, receiptChain(other, [5])[0]!];
			const less = { pairs: 3, digest: new Uint8Array(32) };
			await hub.acceptReceipt(submissionOf(other, first, less), originOf(other));
			await hub.acceptReceipt(submissionOf(other, rival), originOf(other));
			expect(await hub.checkChain()).toEqual([]);
			const intruder = await openDatabase(where);
			await sql.raw(change).execute(intruder.kysely);
			await intruder.close();
			expect((await hub.checkChain()).join()).toContain(found);
		}
	});
});
