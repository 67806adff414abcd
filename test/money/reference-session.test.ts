import fc from "fast-check";
import { expect, test } from "vitest";
import { systemClock } from "../../src/io/clock.ts";
import { checkLedgers, readHubFigures } from "../../src/ledger/check.ts";
import { genesisHash } from "../../src/ledger/entry.ts";
import { openGatewayStore } from "../../src/ledger/gateway-store.ts";
import { openHubStore } from "../../src/ledger/hub-store.ts";
import type { WorkerAnswer } from "../../src/ledger/submission.ts";
import { servedBytesOf } from "../../src/ledger/units.ts";
import { kvrText, shortKvr, unitsText } from "../../src/wallet/amounts.ts";
import { auditedSwarm } from "../support/audited-swarm.ts";
import { testModel } from "../support/memory-backbone.ts";
import { originOf, receiptChain, submissionOf, testSession } from "../support/receipts.ts";
import { seededRandom } from "../support/seeded-random.ts";

test.each([
	[1, true],
	[1, false],
	[2, true],
	[3, false],
])("the same rows over %d workers, whole rows %s: the same served bytes", async (workers, wholeRows) => {
	const swarm = await auditedSwarm({ wholeRows });
	for (let seed = 1; seed <= workers; seed++) {
		await swarm.join({ seed, holds: [{ layer: 1, first: 0, count: seed === workers ? 8 : 2 }] });
	}
	for (let position = 0; position < 13; position++) await swarm.ask();
	await swarm.issue();
	expect(await swarm.ledger()).toEqual({ bytes: servedBytesOf(13n * 2n, testModel.hidden), unpaid: {} });
	await swarm.close();
});

const hidden = 3072;
const positions = 13;
const topK = 8;

/** Who computed each of the 104 pairs, how each dispatch was asked, and how the receipts came. */
const plan = fc.record({
	/** Of each position: how its 8 pairs are split over workers 0 to 3. */
	workers: fc.array(fc.array(fc.nat(3), { minLength: topK, maxLength: topK }), {
		minLength: positions,
		maxLength: positions,
	}),
	/** After how many positions each worker's receipt ends. */
	window: fc.integer({ min: 1, max: positions }),
	/** Receipts in this order, some twice. */
	order: fc.array(fc.nat(1000), { minLength: 60, maxLength: 60 }),
	confirmed: fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }),
	/** Entries that travel together. */
	page: fc.integer({ min: 1, max: 20 }),
});

test("13 positions x 8 experts x 3072 are 1,277,952 served bytes, 1.277952 units, 0.008945664 KVR, however they were computed, split and ordered", async () => {
	expect(servedBytesOf(BigInt(positions * topK), hidden)).toBe(1_277_952n);
	await fc.assert(
		fc.asyncProperty(plan, async ({ workers, window, order, confirmed, page }) => {
			const hub = await openHubStore(":memory:", { clock: systemClock, random: seededRandom(1) });
			const gateway = await openGatewayStore(":memory:", { clock: systemClock });
			// All four are paid to one wallet; encoding and mode never reach a receipt: pairs do.
			const receipts = [0, 1, 2, 3].flatMap((worker) => {
				const pairs = workers.map((split) => split.filter((who) => who === worker).length);
				const windows: number[] = [];
				for (let at = 0; at < positions; at += window) {
					windows.push(pairs.slice(at, at + window).reduce((sum, count) => sum + count, 0));
				}
				const s = testSession(hub.ledgerId, { worker: `worker ${worker}`, wallet: "one" });
				return receiptChain(s, windows, { hidden }).map((receipt) => ({ s, receipt }));
			});
			const sent = [...order.map((at) => receipts[at % receipts.length]!), ...receipts];
			for (const [at, { s, receipt }] of sent.entries()) {
				const answer: WorkerAnswer | undefined = confirmed[at] ? undefined : null;
				const { status } = await hub.acceptReceipt(submissionOf(s, receipt, answer), originOf(s));
				expect(["confirmed", "unconfirmed"]).toContain(status);
			}
			for (let { after, hash } = { after: 0, hash: genesisHash }; ; ) {
				const entries = await hub.entriesAfter(after, hash, page);
				if (!("entries" in entries)) throw new Error("diverged");
				if (entries.entries.length === 0) break;
				({ after, hash } = await gateway.credit(entries));
			}
			const check = await gateway.check();
			const [wallet] = check.wallets;
			expect(check.wallets).toHaveLength(1);
			expect(wallet).toMatchObject({ bytes: 1_277_952n, pending: 8_945_664n, remainder: 0n });
			expect([unitsText(wallet!.bytes), kvrText(wallet!.pending), shortKvr(wallet!.pending)]).toEqual([
				"1.277952",
				"0.008945664",
				"0.00895",
			]);
			expect(checkLedgers(check, await readHubFigures(hub, check.cursor)).differences).toEqual([]);
			await gateway.close();
			await hub.close();
		}),
		{ numRuns: 8 },
	);
});
