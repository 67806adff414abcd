import {
	closeSync,
	existsSync,
	fdatasync,
	fsyncSync,
	ftruncateSync,
	mkdirSync,
	openSync,
	renameSync,
	unlinkSync,
	writeSync,
} from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { failpoint } from "../io/failpoint.ts";
import { systemErrorWords } from "../io/system-error.ts";
import { decodeRecord, encodeRecord, type JournalRecord, type JournalSession } from "./journal-record.ts";
import { JournalState } from "./journal-state.ts";

const extension = ".journal";
/** A power cut may lose what was written within this time; a killed process loses nothing. */
const syncEveryMs = 1_000;
/** A journal is shortened at the next acknowledged receipt after it has grown by this much. */
const shortenBytes = 4 * 2 ** 20;

export interface JournalParts {
	/** Where the journals of a backbone lie. */
	readonly folder: string;
	readonly clock: Clock;
	/** @default 4 MiB */
	readonly shortenBytes?: number;
}

/**
 * The journal of one session: appended to before anything follows from what it says. A write is one call into the kernel's
 * cache (microseconds), so that it is there when the process is killed; the disk has it a second later.
 */
export class SessionJournal {
	readonly path: string;
	readonly state: JournalState;
	readonly #parts: JournalParts;
	#file: number;
	/** Bytes of whole records in the file. */
	#size: number;
	#grown: number;
	#cancelSync: (() => void) | null = null;
	#closed = false;

	private constructor(parts: JournalParts, path: string, file: number, state: JournalState, size: number) {
		this.#parts = parts;
		this.path = path;
		this.#file = file;
		this.state = state;
		this.#size = size;
		this.#grown = size;
	}

	/** Starts a session's journal. Throws `ledger` when it exists or cannot be written. */
	static create(parts: JournalParts, session: JournalSession): SessionJournal {
		const path = join(parts.folder, `${Buffer.from(session.session).toString("hex")}${extension}`);
		const file = attempt(path, () => {
			// `recursive` would say ENOENT where the disk is read-only.
			if (!existsSync(parts.folder))
				mkdirSync(parts.folder, { recursive: !existsSync(dirname(parts.folder)), mode: 0o700 });
			return openSync(path, "ax", 0o600);
		});
		const journal = new SessionJournal(parts, path, file, new JournalState(), 0);
		journal.append(session);
		return journal;
	}

	/** Opens a journal that a process left behind; a torn tail is cut off. `lostBytes` were not readable (0 after a clean stop). */
	static async recover(parts: JournalParts, path: string): Promise<{ journal: SessionJournal; lostBytes: number }> {
		const bytes = await readFile(path);
		const state = new JournalState();
		let offset = 0;
		for (let found = decodeRecord(bytes, 0); found !== null; found = decodeRecord(bytes, offset)) {
			state.apply(found.record);
			offset = found.next;
		}
		const file = attempt(path, () => {
			const opened = openSync(path, "r+");
			ftruncateSync(opened, offset);
			closeSync(opened);
			return openSync(path, "a", 0o600);
		});
		return { journal: new SessionJournal(parts, path, file, state, offset), lostBytes: bytes.length - offset };
	}

	/** Writes records, in their order and all at once. Throws `disk_full` or `ledger`: then nothing may follow from them. */
	append(...records: readonly JournalRecord[]): void {
		const bytes = Buffer.concat(records.map(encodeRecord));
		attempt(this.path, () => this.#writeWhole(bytes));
		for (const record of records) this.state.apply(record);
		this.#size += bytes.length;
		this.#grown += bytes.length;
		const last = records.at(-1);
		if (last?.kind === "acknowledged" && this.#grown > (this.#parts.shortenBytes ?? shortenBytes)) this.#shorten();
		this.#cancelSync ??= this.#parts.clock.after(syncEveryMs, () => this.#sync());
	}

	/** Everything is receipted and acknowledged: the journal may go. */
	get finished(): boolean {
		return this.state.open.length === 0 && this.state.settled.length === 0;
	}

	/** Closes the file; removes it when it is finished. */
	close(): void {
		if (this.#closed) return;
		this.#closed = true;
		this.#cancelSync?.();
		const file = this.#file;
		if (this.finished) {
			failpoint("backbone.retire.before");
			unlinkSync(this.path);
			failpoint("backbone.retire.after");
			closeSync(file);
		} else fdatasync(file, () => closeSync(file));
	}

	/** All or nothing: what is appended behind half a record would be lost with it at the next start. */
	#writeWhole(bytes: Uint8Array): void {
		try {
			writeAll(this.#file, bytes);
		} catch (error) {
			ftruncateSync(this.#file, this.#size);
			throw error;
		}
	}

	#sync(): void {
		this.#cancelSync = null;
		// In the thread pool; an error here shows at the next write as well.
		if (!this.#closed) fdatasync(this.#file, () => {});
	}

	#shorten(): void {
		const draft = `${this.path}.new`;
		attempt(this.path, () => {
			const file = openSync(draft, "w", 0o600);
			const bytes = Buffer.concat([...this.state.records()].map(encodeRecord));
			writeAll(file, bytes);
			fsyncSync(file);
			renameSync(draft, this.path);
			closeSync(this.#file);
			this.#file = file;
			this.#size = bytes.length;
			this.#grown = 0;
		});
	}
}

/** The paths of the journals in a folder: sessions whose receipts are not all acknowledged. */
export async function journalsIn(folder: string): Promise<readonly string[]> {
	const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
		if (error.code === "ENOENT") return [];
		throw error;
	});
	return names.filter((name) => name.endsWith(extension)).map((name) => join(folder, name));
}

function writeAll(file: number, bytes: Uint8Array): void {
	for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

function attempt<T>(path: string, run: () => T): T {
	try {
		return run();
	} catch (cause) {
		const { code } = cause as NodeJS.ErrnoException;
		const full = code === "ENOSPC" || code === "EDQUOT";
		throw new KvasirError(
			full ? "disk_full" : "ledger",
			`Cannot write the journal ${path}: ${systemErrorWords(cause)}`,
			{
				hint: "Work is accepted again when the journal can be written",
				cause,
			},
		);
	}
}
