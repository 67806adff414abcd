import { type FileHandle, open, stat } from "node:fs/promises";
import { KvasirError } from "../errors.ts";
import { GgufCursor, GgufFormatError, WindowTooSmall } from "./gguf-cursor.ts";
import { type GgufHeader, readHeader } from "./gguf-header.ts";
import { ggufLimits } from "./gguf-limits.ts";

/** One open GGUF file; its header is read, its weights are not. */
export interface GgufShard {
	readonly path: string;
	readonly fileBytes: number;
	readonly header: GgufHeader;
	/** The raw bytes up to the data offset, for the model's id. */
	readonly headerBytes: Uint8Array;
	/** `length` bytes from `offset` of the file, in memory of their own. Throws `bad_gguf` when the file has become shorter. */
	read(offset: number, length: number): Promise<Uint8Array>;
	close(): Promise<void>;
}

/** Opens a file and reads its header. Throws `file_missing`, `bad_file` or `bad_gguf` (naming the byte and what was expected there). */
export async function openShard(path: string, shard: number): Promise<GgufShard> {
	const handle = await openFile(path);
	try {
		const { size } = await handle.stat();
		const { header, window } = await readGrowing(handle, path, size, shard);
		const headerBytes = window.subarray(0, header.dataOffset);
		const read = (offset: number, length: number) => readRange(handle, path, offset, length);
		return { path, fileBytes: size, header, headerBytes, read, close: () => handle.close() };
	} catch (error) {
		await handle.close();
		throw error;
	}
}

async function openFile(path: string): Promise<FileHandle> {
	try {
		// Asked before opening, because opening a named pipe waits for a writer.
		const found = await stat(path);
		if (found.isFile()) return await open(path, "r");
		const kind = found.isDirectory() ? "a directory" : "a device, pipe or socket";
		throw new KvasirError("bad_gguf", `Cannot read ${path}: expected a file, found ${kind}`);
	} catch (cause) {
		if (cause instanceof KvasirError) throw cause;
		const { code, message } = cause as NodeJS.ErrnoException;
		if (code === "ENOENT" || code === "ENOTDIR") {
			throw new KvasirError("file_missing", `Cannot open ${path}: no such file`, {
				cause,
				hint: "Check the path, or register the file with: kvasir model add NAME PATH",
				facts: { path },
			});
		}
		throw new KvasirError("bad_file", `Cannot open ${path}: ${code ?? message}`, { cause, facts: { path } });
	}
}

/** Parses a window from the file's start, and takes four times as much as long as the header is longer. */
async function readGrowing(handle: FileHandle, path: string, fileBytes: number, shard: number) {
	let windowBytes = Math.min(fileBytes, ggufLimits.firstWindowBytes);
	for (;;) {
		const window = await readRange(handle, path, 0, windowBytes);
		try {
			const header = readHeader(new GgufCursor(window, fileBytes), shard);
			// Padding between header and data belongs to the header's bytes.
			const wanted = Math.min(header.dataOffset, fileBytes);
			return { header, window: wanted <= windowBytes ? window : await readRange(handle, path, 0, wanted) };
		} catch (error) {
			if (error instanceof GgufFormatError) throw badGguf(path, error);
			if (!(error instanceof WindowTooSmall)) throw error;
			windowBytes = Math.min(fileBytes, ggufLimits.headerBytes, Math.max(windowBytes * 4, error.neededBytes));
		}
	}
}

function badGguf(path: string, error: GgufFormatError): KvasirError {
	return new KvasirError("bad_gguf", `Cannot read ${path}: at byte ${error.offset} ${error.message}`, {
		hint: "the file is truncated, damaged or of another kind: compare its size and checksum with its source",
		facts: { path, offset: error.offset },
	});
}

async function readRange(handle: FileHandle, path: string, offset: number, length: number): Promise<Uint8Array> {
	const bytes = new Uint8Array(length);
	let filled = 0;
	while (filled < length) {
		const wanted = Math.min(length - filled, ggufLimits.readBytes);
		const { bytesRead } = await handle.read(bytes, filled, wanted, offset + filled);
		if (bytesRead === 0) {
			throw badGguf(
				path,
				new GgufFormatError(offset + filled, `expected ${length - filled} more bytes, found the end of the file`),
			);
		}
		filled += bytesRead;
	}
	return bytes;
}
