import { type FileHandle, open, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { sha256Aside } from "../io/crypto.ts";
import { makePrivateFolder } from "../io/files.ts";
import { systemError } from "../io/system-error.ts";

const complete = /^[0-9a-f]{64}$/;
const unfinished = /^[0-9a-f]{64}\.part$/;

/** Slices on disk, each under its SHA-256; what was used longest ago goes when there are too many bytes. */
export interface SliceCache {
	/** Bytes of everything kept, unfinished ones included. */
	readonly bytes: number;
	/** A slice whose bytes were checked just now; null where it is not here. One that does not fit its digest is deleted. */
	read(digest: string): Promise<Uint8Array<ArrayBuffer> | null>;
	/** Opens what is there of an unfinished slice, for more of it. Only one at a time for each digest. Throws `disk_full`, `bad_file`, `file_missing`. */
	resume(digest: string, totalBytes: number): Promise<UnfinishedSlice>;
}

/** A slice that is being written; what is there stays there when it is closed, for the next time. */
export interface UnfinishedSlice {
	readonly bytes: number;
	/** Throws `disk_full`. */
	append(chunk: Uint8Array): Promise<void>;
	/** Begins again at its first byte. */
	restart(): Promise<void>;
	/** Checks all of it against the digest: then it is in the cache, and its bytes are returned; else, or where its file is gone, it is deleted, and null. */
	finish(): Promise<Uint8Array<ArrayBuffer> | null>;
	close(): Promise<void>;
}

interface Entry {
	bytes: number;
	usedMs: number;
}

/** Opens the cache of a folder, made where it is missing. */
export async function openSliceCache(options: { folder: string; bytesMax: number; clock: Clock }): Promise<SliceCache> {
	const { folder, bytesMax, clock } = options;
	await makePrivateFolder(folder);
	const entries = new Map<string, Entry>();
	for (const name of await readdir(folder)) {
		if (!complete.test(name) && !unfinished.test(name)) continue;
		const { size, mtimeMs } = await stat(join(folder, name));
		entries.set(name, { bytes: size, usedMs: mtimeMs });
	}
	return new FolderCache(folder, bytesMax, clock, entries);
}

class FolderCache implements SliceCache {
	readonly #folder: string;
	readonly #bytesMax: number;
	readonly #clock: Clock;
	/** By file name. */
	readonly #entries: Map<string, Entry>;
	readonly #open = new Set<string>();

	constructor(folder: string, bytesMax: number, clock: Clock, entries: Map<string, Entry>) {
		this.#folder = folder;
		this.#bytesMax = bytesMax;
		this.#clock = clock;
		this.#entries = entries;
	}

	get bytes(): number {
		return [...this.#entries.values()].reduce((sum, { bytes }) => sum + bytes, 0);
	}

	async read(digest: string): Promise<Uint8Array<ArrayBuffer> | null> {
		const entry = this.#entries.get(digest);
		if (entry === undefined) return null;
		const bytes = await readFile(join(this.#folder, digest)).catch(() => null);
		if (bytes !== null && (await hexDigest(bytes)) === digest) {
			await this.#used(digest, entry);
			return bytes;
		}
		await this.#delete(digest);
		return null;
	}

	async resume(digest: string, totalBytes: number): Promise<UnfinishedSlice> {
		const name = `${digest}.part`;
		const begun = this.#entries.get(name)?.bytes ?? 0;
		this.#open.add(name);
		try {
			await this.#makeRoom(totalBytes - begun);
			const file = await this.#openPart(name);
			const entry = { bytes: (await file.stat()).size, usedMs: this.#clock.now() };
			this.#entries.set(name, entry);
			return this.#unfinished(digest, file, entry);
		} catch (error) {
			this.#open.delete(name);
			throw diskError(error);
		}
	}

	/** The folder may have been deleted meanwhile: it is a cache. */
	async #openPart(name: string): Promise<FileHandle> {
		const path = join(this.#folder, name);
		return open(path, "a+", 0o600).catch(async (error: NodeJS.ErrnoException) => {
			if (error.code !== "ENOENT") throw error;
			await makePrivateFolder(this.#folder);
			return open(path, "a+", 0o600);
		});
	}

	#unfinished(digest: string, file: FileHandle, entry: Entry): UnfinishedSlice {
		const name = `${digest}.part`;
		const path = join(this.#folder, name);
		const close = async () => {
			this.#open.delete(name);
			await file.close();
		};
		return {
			get bytes() {
				return entry.bytes;
			},
			async append(chunk) {
				try {
					await file.appendFile(chunk);
					entry.bytes += chunk.length;
				} catch (error) {
					// Part of the chunk may have been written: what counts is what is there.
					entry.bytes = (await file.stat()).size;
					throw diskError(error);
				}
			},
			async restart() {
				await file.truncate(0);
				entry.bytes = 0;
			},
			finish: async () => {
				const bytes = await readFile(path).catch(() => null);
				if (bytes === null || (await hexDigest(bytes)) !== digest) {
					await this.#delete(name);
					return null;
				}
				await file.sync().catch((error) => {
					throw diskError(error);
				});
				await rename(path, join(this.#folder, digest));
				this.#entries.delete(name);
				this.#entries.set(digest, { bytes: bytes.length, usedMs: this.#clock.now() });
				return bytes;
			},
			close,
		};
	}

	/** Deletes what was used longest ago until `bytes` more fit; what is being written stays. */
	async #makeRoom(bytes: number): Promise<void> {
		const oldest = [...this.#entries].sort(([, a], [, b]) => a.usedMs - b.usedMs);
		for (const [name] of oldest) {
			if (this.bytes + bytes <= this.#bytesMax) return;
			if (!this.#open.has(name)) await this.#delete(name);
		}
	}

	async #used(name: string, entry: Entry): Promise<void> {
		entry.usedMs = this.#clock.now();
		const seconds = entry.usedMs / 1000;
		await utimes(join(this.#folder, name), seconds, seconds).catch(() => {});
	}

	async #delete(name: string): Promise<void> {
		this.#entries.delete(name);
		await rm(join(this.#folder, name), { force: true });
	}
}

async function hexDigest(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
	return Buffer.from(await sha256Aside(bytes)).toString("hex");
}

function diskError(error: unknown): unknown {
	const { code } = error as NodeJS.ErrnoException;
	if (code !== "ENOSPC" && code !== "EDQUOT" && code !== "EFBIG") return systemError(error, "keep a slice") ?? error;
	return new KvasirError("disk_full", `Cannot keep a slice: the disk is full (${code})`, {
		cause: error,
		hint: "Free some space, or keep less with --cache; what is held already is served on",
	});
}
