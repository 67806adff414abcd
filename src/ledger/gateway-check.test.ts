import { sql } from "kysely";
import { afterAll, describe, expect, it } from "vitest";
import { databasesUnderTest } from "../../test/support/databases.ts";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { claimOf, pageOf, walletNamed } from "../../test/support/ledger-pages.ts";
import { checkLedgers } from "./check.ts";
import { openDatabase } from "./database.ts";
import { openGatewayStore } from "./gateway-store.ts";

describe.each(databasesUnderTest("gateway-check"))("check() on $name", ({ location, skip, clean }) => {
	afterAll(clean);

	const ann = walletNamed("ann");
	it.skipIf(skip).each([
		[`update gateway_accounts set nano = nano + 1 where id = 'pending:${ann}'`, "its postings sum to"],
		[`delete from gateway_accounts where id = 'claimed:${ann}'`, `account claimed:${ann} is missing`],
		["update gateway_postings set nano = nano + 1 where transaction_id = 1 and nano > 0", "transaction 1 sums to 1"],
		["update gateway_wallets set remainder = 1", "receipts and balances differ by -1"],
		["update gateway_credits set paid_bytes = 0", "receipts and balances differ by"],
		["update gateway_claims set nano = nano + 1", "its open claims sum to"],
	])("finds: %s", async (change, found) => {
		const where = await location();
		const store = await openGatewayStore(where, { clock: fakeClock() });
		try {
			await store.credit(pageOf([{ wallet: ann, bytes: 1000n }]));
			await store.claim(claimOf("ann", 1, 500n));
			expect(checkLedgers(await store.check(), null)).toMatchObject({ ok: true, differences: [] });
			const intruder = await openDatabase(where);
			await sql.raw(change).execute(intruder.kysely);
			await intruder.close();
			const check = checkLedgers(await store.check(), null);
			expect(check.ok).toBe(false);
			expect(check.differences.join()).toContain(found);
		} finally {
			await store.close();
		}
	});
});
