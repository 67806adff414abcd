import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { builtModule, runUntilKilled } from "../../test/support/killed-child.ts";
import { originOf, receiptChain, submissionOf, testSession } from "../../test/support/receipts.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { addressOf } from "../io/base58.ts";
import { systemClock } from "../io/clock.ts";
import { checkLedgers, readHubFigures } from "./check.ts";
import { type EntryPage, genesisHash, pageJson } from "./entry.ts";
import { openGatewayLedger } from "./gateway-ledger.ts";
import { type HubLedger, openHubLedger } from "./hub-ledger.ts";
import { submissionJson } from "./submission.ts";

const sessions = 10;
const perSession = 30;

const postAll = `
	import { readFileSync } from "node:fs";
	const [ledger, submission, clock, database, file] = process.argv.slice(2);
	const { openHubLedger } = await import(ledger);
	const { parseSubmission } = await import(submission);
	const { systemClock } = await import(clock);
	const hub = await openHubLedger(database, { clock: systemClock });
	const lines = readFileSync(file, "utf8").trim().split("\\n").map(JSON.parse);
	// A few at a time, so that there are many groups.
	for (let at = 0; at < lines.length; at += 7) {
		await Promise.all(lines.slice(at, at + 7).map(async ({ backbone, json }, i) => {
			const verdict = await hub.acceptReceipt(parseSubmission(json), { backbone, meteredBytes: null });
			process.stdout.write(at + i + " " + verdict.status + " " + verdict.entry + "\\n");
		}));
	}`;

const creditAll = `
	import { readFileSync } from "node:fs";
	const [ledger, entry, database, file] = process.argv.slice(2);
	const { openGatewayLedger } = await import(ledger);
	const { parsePage } = await import(entry);
	const gateway = await openGatewayLedger(database);
	const page = parsePage(JSON.parse(readFileSync(file, "utf8")));
	for (let at = 0; at < page.entries.length; at += 3) {
		const { after } = await gateway.credit({ ...page, entries: page.entries.slice(at, at + 3) });
		process.stdout.write(after + "\\n");
	}`;

async function wholePage(hub: HubLedger): Promise<EntryPage> {
	const page = await hub.entriesAfter(0, genesisHash, 1000);
	if ("diverged" in page) throw new Error("diverged");
	return page;
}

it("a hub killed while it inserts has what it acknowledged, once; a gateway killed while it credits credits each once", async () => {
	const home = await temporaryHome();
	const hubDb = join(home, "hub.db");
	const gatewayDb = join(home, "gateway.db");
	const fresh = await openHubLedger(hubDb, { clock: systemClock });
	const chains = Array.from({ length: sessions }, (_, i) => {
		const s = testSession(fresh.ledgerId, { worker: `worker ${i}` });
		return receiptChain(
			s,
			Array.from({ length: perSession }, (_, n) => 1 + ((7 * n + i) % 50)),
		).map((receipt) => ({ s, receipt }));
	});
	await fresh.close();
	const work = Array.from({ length: perSession }, (_, n) => chains.map((chain) => chain[n]!)).flat();
	const submissions = work.map(({ s, receipt }) => ({ origin: originOf(s), submission: submissionOf(s, receipt) }));
	const lines = submissions.map(({ origin, submission }) =>
		JSON.stringify({ backbone: origin.backbone, json: submissionJson(submission) }),
	);
	await writeFile(join(home, "work"), lines.join("\n"));

	const modules = ["src/ledger/hub-ledger.js", "src/ledger/submission.js", "src/io/clock.js"].map(builtModule);
	const acknowledged = new Map<number, string>();
	for (const kills of [40, 120]) {
		for (const line of await runUntilKilled(postAll, [...modules, hubDb, join(home, "work")], kills)) {
			const [index, ...verdict] = line.split(" ");
			// The same receipt again: the same answer, across every death of the process.
			expect(acknowledged.get(Number(index)) ?? verdict.join(" ")).toBe(verdict.join(" "));
			acknowledged.set(Number(index), verdict.join(" "));
		}
	}
	const hub = await openHubLedger(hubDb, { clock: systemClock });
	expect(await hub.checkChain()).toEqual([]);
	const survived = new Map((await wholePage(hub)).entries.map((entry) => [entry.receipt, entry.number]));
	for (const [index, verdict] of acknowledged) {
		const { receipt } = work[index]!;
		expect(`confirmed ${survived.get(Buffer.from(receipt.hash).toString("hex"))}`).toBe(verdict);
	}
	for (const { submission, origin } of submissions)
		expect((await hub.acceptReceipt(submission, origin)).status).toBe("confirmed");
	expect((await wholePage(hub)).entries).toHaveLength(work.length);

	await writeFile(join(home, "page"), JSON.stringify(pageJson(await wholePage(hub))));
	const creditModules = ["src/ledger/gateway-ledger.js", "src/ledger/entry.js"].map(builtModule);
	for (const kills of [20, 50])
		await runUntilKilled(creditAll, [...creditModules, gatewayDb, join(home, "page")], kills);
	const gateway = await openGatewayLedger(gatewayDb);
	const half = await gateway.check();
	expect(half.cursor.after).toBeGreaterThanOrEqual(150);
	expect(checkLedgers(half, await readHubFigures(hub, half.cursor)).differences).toEqual([]);
	await gateway.credit(await wholePage(hub));
	for (const chain of chains) {
		const expected = chain.reduce((sum, { receipt }) => sum + receipt.receipt.servedBytes, 0n);
		const balance = await gateway.balance(addressOf(chain[0]!.s.payout));
		expect([balance.servedBytes, balance.pending]).toEqual([expected, expected * 7n]);
	}
	await gateway.close();
	await hub.close();
});
