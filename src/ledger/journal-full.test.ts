import type fs from "node:fs";
import { expect, it, vi } from "vitest";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { SessionJournal } from "./journal.ts";
import { encodeRecord, type JournalRecord } from "./journal-record.ts";

/** Bytes that the disk still has. */
const disk = vi.hoisted(() => ({ freeBytes: Number.POSITIVE_INFINITY }));

vi.mock("node:fs", async (original) => {
	const real = await original<typeof fs>();
	return {
		...real,
		writeSync(file: number, bytes: Uint8Array, at: number) {
			if (disk.freeBytes === 0) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
			const end = Math.min(bytes.length, at + disk.freeBytes);
			disk.freeBytes -= end - at;
			return real.writeSync(file, bytes.subarray(at, end));
		},
	};
});

const paid = (id: number): JournalRecord => ({ kind: "paid", id, pairs: 8, answerHash: new Uint8Array(32).fill(id) });

it("a disk that is full in the middle of a record costs that record alone, not those that come when there is room again", async () => {
	const parts = { folder: await temporaryHome(), clock: fakeClock() };
	const bytes = (length: number) => new Uint8Array(length);
	const journal = SessionJournal.create(parts, {
		...{ kind: "session", session: bytes(16), worker: bytes(32), payout: bytes(32), payoutSignature: bytes(64) },
		...{ relay: "", modelId: bytes(32), topK: 8, hidden: 64 },
	});
	journal.append(paid(1));
	for (let freeBytes = 0; freeBytes < encodeRecord(paid(2)).length; freeBytes += 5) {
		disk.freeBytes = freeBytes;
		expect(() => journal.append(paid(2))).toThrow(expect.objectContaining({ code: "disk_full" }));
	}
	disk.freeBytes = Number.POSITIVE_INFINITY;
	journal.append(paid(3));
	journal.close();
	const { journal: again, lostBytes } = await SessionJournal.recover(parts, journal.path);
	expect(lostBytes).toBe(0);
	expect(again.state.settled.map(({ id }) => id)).toEqual([1, 3]);
	again.close();
});
