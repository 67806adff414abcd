import { expect, test } from "vitest";
import { fakeClock } from "../../../test/support/fake-clock.ts";
import { journalSessionOf, testSession } from "../../../test/support/receipts.ts";
import { scriptedIdentity } from "../../../test/support/scripted-worker.ts";
import { KvasirError } from "../../errors.ts";
import type { SessionJournal } from "../../ledger/journal.ts";
import type { JournalRecord } from "../../ledger/journal-record.ts";
import { JournalState } from "../../ledger/journal-state.ts";
import { parseReceipt } from "../../ledger/receipt.ts";
import { SessionReceipts } from "./session-receipts.ts";

const s = testSession("0123456789abcdef0123456789abcdef");
const facts = journalSessionOf(s, 64);
const ledgerId = new Uint8Array(16).fill(5);

test("what a receipt would have covered that could not be written down is in the next", async () => {
	const state = new JournalState();
	let full = false;
	const journal = {
		state,
		append(record: JournalRecord) {
			if (full) throw new KvasirError("disk_full", "Cannot write: full");
			state.apply(record);
		},
	} as SessionJournal;
	const receipts = new SessionReceipts({
		facts,
		link: null,
		journal,
		identity: scriptedIdentity(1),
		clock: fakeClock(),
	});
	const pay = (id: number) => {
		receipts.sent(id);
		receipts.paid(id, 8, new Uint8Array(32).fill(id));
	};
	pay(1);
	full = true;
	await expect(receipts.issue(ledgerId)).rejects.toMatchObject({ code: "disk_full" });
	receipts.over = true;
	expect(receipts.finished).toBe(false);
	full = false;
	pay(2);
	const issued = await receipts.issue(ledgerId);
	expect(parseReceipt(issued!.submission.body)).toMatchObject({ number: 1, from: 0, to: 2, pairs: 16n });
	expect(await receipts.issue(ledgerId)).toBeNull();
	expect(state.settled).toEqual([]);
});
