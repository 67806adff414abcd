import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { originOf, receiptChain, submissionOf, testSession } from "../../test/support/receipts.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { systemClock } from "../io/clock.ts";
import { systemRandom } from "../io/random.ts";
import { genesisHash } from "./entry.ts";
import { openGatewayLedger } from "./gateway-ledger.ts";
import { openHubLedger } from "./hub-ledger.ts";
import { openHubStore } from "./hub-store.ts";

it("waitForEntries() resolves with the next entry, at its time, when it is aborted, and at once when there is more", async () => {
	const clock = fakeClock();
	const hub = await openHubLedger(":memory:", { clock });
	const s = testSession(hub.ledgerId);
	const [first] = receiptChain(s, [8]);
	const waiting = hub.waitForEntries(0, 25_000);
	expect(await hub.acceptReceipt(submissionOf(s, first!), originOf(s))).toMatchObject({ entry: 1 });
	await waiting;
	await hub.waitForEntries(0, 25_000);
	let late = false;
	const timed = hub.waitForEntries(1, 25_000).then(() => {
		late = true;
	});
	await clock.advance(24_999);
	expect(late).toBe(false);
	await clock.advance(1);
	await timed;
	const stop = new AbortController();
	const aborted = hub.waitForEntries(1, 25_000, stop.signal);
	stop.abort();
	await aborted;
	const closed = hub.waitForEntries(1, 25_000);
	await hub.close();
	await closed;
	expect(clock.pending).toBe(0);
});

it("a reopened ledger has its entries, its id and its head", async () => {
	const location = join(await temporaryHome(), "hub.db");
	const hub = await openHubLedger(location, { clock: systemClock });
	const s = testSession(hub.ledgerId);
	await hub.acceptReceipt(submissionOf(s, receiptChain(s, [8])[0]!), originOf(s));
	await hub.close();
	const again = await openHubLedger(location, { clock: systemClock });
	expect(again.ledgerId).toBe(hub.ledgerId);
	await again.waitForEntries(0, 60_000);
	expect(await again.entriesAfter(0, genesisHash, 10)).toMatchObject({ head: 1, entries: [{ number: 1, pairs: 8n }] });
	await again.close();
	await expect(again.entriesAfter(0, genesisHash, 10)).rejects.toMatchObject({ code: "ledger" });
	await again.close();
});

it("says in words why a ledger cannot be opened", async () => {
	const home = await temporaryHome();
	const garbage = join(home, "garbage.db");
	await writeFile(garbage, "this is no database, and long enough to be looked at as one ".repeat(50));
	for (const location of [garbage, join(home, "no", "such", "folder.db"), "postgres://user:secret@127.0.0.1:1/x"]) {
		const error = (await openHubLedger(location, { clock: systemClock }).catch((thrown: Error) => thrown)) as Error;
		expect(error).toMatchObject({ code: "ledger", message: expect.stringContaining("Cannot open the ledger at") });
		expect(error.message).not.toContain("secret");
	}
	const missing = { clock: systemClock, mustExist: true };
	await expect(openHubLedger(join(home, "hub.db"), missing)).rejects.toMatchObject({ code: "file_missing" });
	await expect(openGatewayLedger(join(home, "gateway.db"), { mustExist: true })).rejects.toMatchObject({
		code: "file_missing",
	});
	expect(await readdir(home)).toEqual(["garbage.db"]);
});

it("two processes' worth of threads share one gateway store", async () => {
	const location = join(await temporaryHome(), "gateway.db");
	const [one, two] = await Promise.all([openGatewayLedger(location), openGatewayLedger(location)]);
	await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : two).exportPayouts()));
	expect(await two.cursor()).toEqual({ ledgerId: null, after: 0, hash: genesisHash });
	await Promise.all([one.close(), two.close()]);
});

it("two hubs on one file take turns and leave one chain", async () => {
	const location = join(await temporaryHome(), "hub.db");
	const hubs = await Promise.all([1, 2].map(() => openHubLedger(location, { clock: systemClock })));
	await Promise.all(
		hubs.flatMap((hub, i) =>
			[1, 2, 3].map(async (n) => {
				const s = testSession(hub.ledgerId, { worker: `worker ${i} ${n}` });
				for (const receipt of receiptChain(s, [1, 2, 3, 4, 5])) {
					expect(await hub.acceptReceipt(submissionOf(s, receipt), originOf(s))).toMatchObject({ status: "confirmed" });
				}
			}),
		),
	);
	expect(await hubs[0]!.checkChain()).toEqual([]);
	expect(await hubs[1]!.entriesAfter(0, genesisHash, 100)).toMatchObject({ head: 30 });
	await Promise.all(hubs.map((hub) => hub.close()));
});

it("commits receipts that come together in few transactions, each durable before its answer", async () => {
	const heads: number[] = [];
	const location = join(await temporaryHome(), "hub.db");
	const onHead = (head: number) => void heads.push(head);
	const hub = await openHubStore(location, { clock: systemClock, random: systemRandom, onHead });
	const chains = Array.from({ length: 50 }, (_, i) => {
		const s = testSession(hub.ledgerId, { worker: `worker ${i}` });
		return { s, submissions: receiptChain(s, Array(20).fill(8)).map((receipt) => submissionOf(s, receipt)) };
	});
	const startMs = performance.now();
	let early = 0;
	await Promise.all(
		chains.flatMap(({ s, submissions }) =>
			submissions.map(async (submission) => {
				const verdict = await hub.acceptReceipt(submission, originOf(s));
				if (verdict.status === "refused" || verdict.entry > heads.at(-1)!) early++;
			}),
		),
	);
	const perSecond = Math.round(1000 / ((performance.now() - startMs) / 1000));
	expect(early).toBe(0);
	expect(heads.at(-1)).toBe(1000);
	// The fsync of a commit is what a receipt alone would cost; on an idle machine this takes 2,000 a second and more.
	expect(heads.length, `${perSecond} receipts a second`).toBeLessThan(200);
	await hub.close();
});
