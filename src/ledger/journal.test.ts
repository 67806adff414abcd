import { appendFile, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { builtModule, runUntilKilled } from "../../test/support/killed-child.ts";
import { runs } from "../../test/support/long.ts";
import { journalSessionOf, receiptChain, submissionOf, testSession } from "../../test/support/receipts.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { journalsIn, SessionJournal } from "./journal.ts";
import { decodeRecord, encodeRecord, type JournalRecord } from "./journal-record.ts";
import { JournalState } from "./journal-state.ts";
import { unpaidReasons } from "./receipt.ts";

const s = testSession("0123456789abcdef0123456789abcdef");
const chain = receiptChain(s, [8, 16, 24]);
const session = journalSessionOf(s, 3072);
const hash = (n: number) => new Uint8Array(32).fill(n);
const receiptRecord = (i: number): JournalRecord => {
	const { body, signature } = submissionOf(s, chain[i]!);
	return { kind: "receipt", number: i + 1, to: (i + 1) * 10, body, signature: new Uint8Array(signature) };
};
const figures = (state: JournalState) => ({
	session: state.session,
	last: state.last,
	settled: state.settled,
	open: state.open,
});

const records = fc.array(
	fc.oneof(
		fc.record({
			kind: fc.constant("paid" as const),
			id: fc.integer({ min: 1, max: 40 }),
			pairs: fc.nat(4096),
			answerHash: fc.nat(255).map(hash),
		}),
		fc.record({
			kind: fc.constant("unpaid" as const),
			id: fc.integer({ min: 1, max: 2 ** 50 }),
			reason: fc.constantFrom(...unpaidReasons),
		}),
		fc.record({ kind: fc.constant("condemned" as const), reason: fc.constant("wrong" as const), from: fc.nat(40) }),
		fc.nat(2).map(receiptRecord),
		fc.record({
			kind: fc.constant("answer" as const),
			number: fc.integer({ min: 1, max: 3 }),
			answer: fc.constantFrom(null, { signature: new Uint8Array(64).fill(3) }, { pairs: 7, digest: hash(4) }),
		}),
		fc.record({ kind: fc.constant("acknowledged" as const), number: fc.integer({ min: 1, max: 3 }) }),
	),
	{ maxLength: 30 },
);

describe("SessionJournal", () => {
	it("adds up to the same after a restart, and after being shortened", async () => {
		const folder = await temporaryHome();
		let run = 0;
		await fc.assert(
			fc.asyncProperty(records, fc.boolean(), async (list, shorten) => {
				const parts = {
					folder: join(folder, String(run++)),
					clock: fakeClock(),
					...(shorten ? { shortenBytes: 1 } : {}),
				};
				const journal = SessionJournal.create(parts, session);
				for (const record of list) journal.append(record);
				const before = figures(journal.state);
				const { finished } = journal;
				journal.close();
				const paths = await journalsIn(parts.folder);
				expect(paths.length).toBe(finished ? 0 : 1);
				if (finished) return;
				const { journal: again, lostBytes } = await SessionJournal.recover(parts, paths[0]!);
				expect(lostBytes).toBe(0);
				expect(figures(again.state)).toEqual(before);
				again.close();
			}),
			{ numRuns: runs(60, 1_000) },
		);
	});

	it("leaves what is not receipted, and what the hub has not acknowledged", () => {
		const state = new JournalState();
		state.apply(session);
		for (const id of [9, 10, 11, 12]) state.apply({ kind: "paid", id, pairs: 8, answerHash: hash(id) });
		state.apply({ kind: "unpaid", id: 13, reason: "late" });
		state.apply(receiptRecord(0));
		expect(state.settled.map((settled) => settled.id)).toEqual([11, 12, 13]);
		expect(state.last).toEqual({ number: 1, hash: chain[0]!.hash, to: 10 });
		expect(state.open.map((open) => open.submission.answer)).toEqual([null]);
		state.apply({ kind: "answer", number: 1, answer: { signature: hash(1) } });
		expect(state.open[0]!.submission.answer).toEqual({ signature: hash(1) });
		state.apply({ kind: "condemned", reason: "wrong", from: 12 });
		expect(state.settled).toEqual([
			{ id: 11, pairs: 8, answerHash: hash(11) },
			{ id: 12, reason: "wrong" },
			{ id: 13, reason: "late" },
		]);
		state.apply({ kind: "acknowledged", number: 1 });
		expect(state.open).toEqual([]);
	});

	it("stays short over a long session", async () => {
		const parts = { folder: await temporaryHome(), clock: fakeClock(), shortenBytes: 2_000 };
		const journal = SessionJournal.create(parts, session);
		for (let round = 0; round < 50; round++) {
			for (let i = 0; i < 20; i++)
				journal.append({ kind: "paid", id: 1000 * round + i + 100, pairs: 8, answerHash: hash(i) });
			journal.append({ ...receiptRecord(0), number: round + 1, to: 1000 * round + 200 } as JournalRecord);
			journal.append({ kind: "acknowledged", number: round + 1 });
		}
		expect((await stat(journal.path)).size).toBeLessThan(4_000);
		expect(journal.finished).toBe(true);
		journal.append({ kind: "paid", id: 60_000, pairs: 8, answerHash: hash(1) });
		journal.close();
		const { journal: again } = await SessionJournal.recover(parts, journal.path);
		expect(again.state.last.number).toBe(50);
		expect(again.state.settled).toHaveLength(1);
		again.close();
		expect(await readdir(parts.folder)).toHaveLength(1);
	});

	it("loses a torn tail alone, and goes on after it", async () => {
		const parts = { folder: await temporaryHome(), clock: fakeClock() };
		const journal = SessionJournal.create(parts, session);
		for (let id = 1; id <= 5; id++) journal.append({ kind: "paid", id, pairs: 8, answerHash: hash(id) });
		journal.close();
		const whole = await readFile(journal.path);
		const last = encodeRecord({ kind: "paid", id: 5, pairs: 8, answerHash: hash(5) }).length;
		for (let cut = 1; cut < last; cut += 5) {
			await writeFile(journal.path, whole);
			await truncate(journal.path, whole.length - cut);
			const { journal: again, lostBytes } = await SessionJournal.recover(parts, journal.path);
			expect(lostBytes).toBe(last - cut);
			expect(again.state.settled.map((settled) => settled.id)).toEqual([1, 2, 3, 4]);
			again.append({ kind: "paid", id: 6, pairs: 8, answerHash: hash(6) });
			again.close();
			const { journal: third } = await SessionJournal.recover(parts, journal.path);
			expect(third.state.settled.map((settled) => settled.id)).toEqual([1, 2, 3, 4, 6]);
			third.close();
		}
		await writeFile(journal.path, whole);
		await appendFile(journal.path, Buffer.alloc(100, 0xff));
		expect((await SessionJournal.recover(parts, journal.path)).lostBytes).toBe(100);
	});

	it("never starts over a session that has a journal", async () => {
		const parts = { folder: await temporaryHome(), clock: fakeClock() };
		const journal = SessionJournal.create(parts, session);
		expect(() => SessionJournal.create(parts, session)).toThrow(expect.objectContaining({ code: "ledger" }));
		journal.append({ kind: "paid", id: 1, pairs: 8, answerHash: hash(1) });
		journal.close();
	});

	it("has everything that was appended when the process is killed", async () => {
		const folder = await temporaryHome();
		const script = `
			const [journals, clocks, folder] = process.argv.slice(2);
			const { SessionJournal } = await import(journals);
			const { systemClock } = await import(clocks);
			const bytes = (length, fill) => new Uint8Array(length).fill(fill);
			const journal = SessionJournal.create({ folder, clock: systemClock }, { kind: "session", session: bytes(16, 1),
				worker: bytes(32, 2), payout: bytes(32, 3), payoutSignature: bytes(64, 4), relay: "", modelId: bytes(32, 5), topK: 8, hidden: 64 });
			for (let id = 1; ; id++) {
				journal.append({ kind: "paid", id, pairs: 8, answerHash: bytes(32, 6) });
				if (id % 100 === 0) await new Promise((resolve) => process.stdout.write(id + "\\n", resolve));
			}`;
		const modules = ["src/ledger/journal.js", "src/io/clock.js"].map(builtModule);
		const told = Number((await runUntilKilled(script, [...modules, folder], 30)).at(-1));
		expect(told).toBeGreaterThanOrEqual(3000);
		const [path] = await journalsIn(folder);
		const { journal } = await SessionJournal.recover({ folder, clock: fakeClock() }, path!);
		const ids = journal.state.settled.map((settled) => settled.id);
		expect(ids.length).toBeGreaterThanOrEqual(told);
		expect(ids).toEqual(Array.from({ length: ids.length }, (_, i) => i + 1));
		journal.close();
	});
});

it("decodeRecord() takes nothing for a record that is not one", () => {
	fc.assert(
		fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
			expect(decodeRecord(Buffer.from(bytes), 0)).toBeNull();
		}),
		{ numRuns: runs(1_000, 20_000) },
	);
});
