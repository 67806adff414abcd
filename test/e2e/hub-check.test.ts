import { join } from "node:path";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { openDatabase } from "../../src/ledger/database.ts";
import { openHubStore } from "../../src/ledger/hub-store.ts";
import { fakeClock } from "../support/fake-clock.ts";
import { originOf, receiptChain, submissionOf, testSession } from "../support/receipts.ts";
import { runCli } from "../support/run-cli.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { temporaryHome } from "../support/temporary-home.ts";

async function hubHome(): Promise<string> {
	const home = await temporaryHome();
	const hub = await openHubStore(join(home, "hub.db"), { clock: fakeClock(), random: seededRandom(1) });
	const s = testSession(hub.ledgerId);
	const receipts = [...receiptChain(s, [1, 2]), receiptChain(s, [3])[0]!];
	for (const receipt of receipts) await hub.acceptReceipt(submissionOf(s, receipt), originOf(s));
	await hub.close();
	return home;
}

describe("ledger check where there is the hub's store alone", () => {
	it("checks what the hub can show, and says that the gateway's side was not looked at", async () => {
		const home = await hubHome();
		const named = ["--home", await temporaryHome(), "--hub-db", join(home, "hub.db")];
		for (const words of [["--home", home], named]) {
			const { code, json } = await runCli(["ledger", "check", ...words, "--json"]);
			expect({ code, data: json().data }).toMatchObject({
				code: 0,
				// 3 pairs of 12,288 bytes at 7 nano a byte.
				data: {
					...{ balanced: true, hub: true, gateway: false, cursor: 0, entries: 3, conflicts: 1, differences: [] },
					all: { earned: "0.000258048", paid: "0" },
				},
			});
		}
		const { stdout } = await runCli(["ledger", "check", "--home", home]);
		expect(stdout).toContain("The hub's 3 entries: chain, numbers, signatures; conflicts kept: 1");
		expect(stdout).toContain("what it credited and paid was not looked at");
		expect(stdout).not.toContain("pending");
	});

	it("finds a damaged store, and a named gateway's store must be there", async () => {
		const home = await hubHome();
		const intruder = await openDatabase(join(home, "hub.db"));
		await sql.raw("update hub_receipts set signature = countersign where entry = 2").execute(intruder.kysely);
		await intruder.close();
		const { code, json } = await runCli(["ledger", "check", "--home", home, "--json"]);
		expect(code).toBe(9);
		expect(json().data.differences).toEqual([expect.stringContaining("the backbone's signature does not fit")]);
		const gone = ["--gateway-db", join(home, "not-there.db")];
		const missing = await runCli(["ledger", "check", "--home", home, ...gone, "--json"]);
		expect(missing.json().error).toMatchObject({ code: "file_missing" });
	});
});
