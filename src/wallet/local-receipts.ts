import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { makePrivateFolder } from "../io/files.ts";
import { systemError } from "../io/system-error.ts";

/** A receipt that this home's worker countersigned (or disputed), as it keeps it for itself. */
export interface LocalReceipt {
	/** Hex hash of the receipt's body. */
	readonly receipt: string;
	readonly backbone: string;
	readonly worker: string;
	/** Base58 address it is paid to. */
	readonly payout: string;
	/** Hex. */
	readonly session: string;
	readonly number: number;
	readonly pairs: bigint;
	readonly servedBytes: bigint;
	/** Nano-KVR per 1,000,000 bytes of the receipt's policy. */
	readonly rate: bigint;
	/** False: the worker's own figures differ. */
	readonly countersigned: boolean;
	readonly atMs: number;
	/** What can be shown to others, base64; absent in files of older versions. */
	readonly signed?:
		| { readonly body: string; readonly signature: string; readonly countersignature: string | null }
		| undefined;
}

const amount = z
	.string()
	.regex(/^\d{1,19}$/)
	.transform(BigInt);
const lineSchema = z.object({
	receipt: z.string().max(64),
	backbone: z.string().max(64),
	worker: z.string().max(64),
	payout: z.string().max(64),
	session: z.string().max(64),
	number: z.number().int(),
	pairs: amount,
	servedBytes: amount,
	rate: amount,
	countersigned: z.boolean(),
	atMs: z.number().int(),
	signed: z.object({ body: z.string(), signature: z.string(), countersignature: z.string().nullable() }).optional(),
});

const path = (home: string) => join(home, "receipts.jsonl");

/** Appends receipts to the home's file, one JSON line each. */
export interface LocalReceiptLog {
	append(receipt: LocalReceipt): Promise<void>;
	close(): Promise<void>;
}

/** Opens the home's receipts for appending; a line torn by a crash is ended first. */
export async function openLocalReceipts(home: string): Promise<LocalReceiptLog> {
	await makePrivateFolder(home);
	const file = await open(path(home), "a+", 0o600).catch((cause) => {
		throw systemError(cause, `write ${path(home)}`) ?? cause;
	});
	await endTornLine(file);
	// Appends follow one another: two lines never mix.
	let last: Promise<unknown> = Promise.resolve();
	return {
		append(receipt) {
			const line = JSON.stringify(receipt, (_, value) => (typeof value === "bigint" ? String(value) : value));
			const written = last.then(() => file.appendFile(`${line}\n`));
			last = written.catch(() => {});
			return written;
		},
		async close() {
			await last;
			await file.close();
		},
	};
}

async function endTornLine(file: FileHandle): Promise<void> {
	const { size } = await file.stat();
	if (size === 0) return;
	const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
	if (buffer[0] !== 0x0a) await file.appendFile("\n");
}

/** The home's receipts in the order they were kept; each receipt once, lines that are not whole are skipped. */
export async function* readLocalReceipts(home: string): AsyncGenerator<LocalReceipt> {
	let file: FileHandle;
	try {
		file = await open(path(home), "r");
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
		throw error;
	}
	await file.close();
	const seen = new Set<string>();
	for await (const line of createInterface({
		input: createReadStream(path(home)),
		crlfDelay: Number.POSITIVE_INFINITY,
	})) {
		const parsed = lineSchema.safeParse(jsonOrNull(line));
		if (!parsed.success || seen.has(parsed.data.receipt)) continue;
		seen.add(parsed.data.receipt);
		yield parsed.data;
	}
}

function jsonOrNull(line: string): unknown {
	try {
		return JSON.parse(line);
	} catch {
		return null;
	}
}
