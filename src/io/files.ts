import { constants, open as openDescriptor } from "node:fs";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { Socket } from "node:net";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { KvasirError } from "../errors.ts";
import { systemError, systemErrorWords } from "./system-error.ts";

/** Makes a folder that its owner alone can look into, and those above it; one that is there stays as it is. Throws `bad_file`, `disk_full`, `file_missing`. */
export async function makePrivateFolder(path: string): Promise<string> {
	try {
		await makeFolder(path);
	} catch (cause) {
		throw systemError(cause, `make the folder ${path}`) ?? cause;
	}
	return path;
}

/** Not Node's own `recursive`: that says ENOENT where the file system is read-only, or a quota used up. */
async function makeFolder(path: string): Promise<void> {
	try {
		await mkdir(path, { mode: 0o700 });
	} catch (cause) {
		if ((await stat(path).catch(() => null))?.isDirectory()) return;
		if ((cause as NodeJS.ErrnoException).code !== "ENOENT" || dirname(path) === path) throw cause;
		await makeFolder(dirname(path));
		await mkdir(path, { mode: 0o700 }).catch((again: NodeJS.ErrnoException) => {
			// Another process made it meanwhile.
			if (again.code !== "EEXIST") throw again;
		});
	}
}

/** Writes a file so that a reader, or a crash, sees the old bytes or the new ones; readable by its owner alone. Throws `disk_full`, `bad_file`. */
export async function writePrivateFile(path: string, contents: string | Uint8Array): Promise<void> {
	const draft = `${path}.new`;
	try {
		await makeFolder(dirname(path));
		const file = await open(draft, "w", 0o600);
		try {
			await file.writeFile(contents);
			await file.sync();
		} finally {
			await file.close();
		}
		await rename(draft, path);
	} catch (cause) {
		await rm(draft, { force: true }).catch(() => {});
		throw systemError(cause, `write ${path}`) ?? cause;
	}
}

/**
 * The bytes of a file, or of a pipe such as `<(pass show wallet)`, of at most `maxBytes`; null where there is none.
 * Throws `bad_file`, also for folders and devices.
 */
export async function readSmallFile(path: string, maxBytes: number): Promise<Buffer | null> {
	try {
		const found = await stat(path);
		if (found.isFIFO()) return await readPipe(path, maxBytes);
		if (!found.isFile()) throw badFile(path, found.isDirectory() ? "it is a folder, not a file" : "it is no file");
		const file = await open(path, "r");
		try {
			return await readBounded(file.createReadStream({ autoClose: false }), path, maxBytes);
		} finally {
			await file.close();
		}
	} catch (cause) {
		if (cause instanceof KvasirError) throw cause;
		const { code } = cause as NodeJS.ErrnoException;
		if (code === "ENOENT" || code === "ENOTDIR") return null;
		throw badFile(path, systemErrorWords(cause), cause);
	}
}

/** All bytes of a stream. Throws `bad_file` as soon as they are more than `maxBytes`. */
export async function readBounded(stream: AsyncIterable<Buffer>, name: string, maxBytes: number): Promise<Buffer> {
	const parts: Buffer[] = [];
	let bytes = 0;
	for await (const part of stream) {
		bytes += part.byteLength;
		if (bytes > maxBytes) throw badFile(name, `more than ${maxBytes} bytes`);
		parts.push(part);
	}
	return Buffer.concat(parts);
}

/** Through the event loop: a thread that waits for a writer could not be interrupted. */
async function readPipe(path: string, maxBytes: number): Promise<Buffer> {
	// A bare descriptor: the socket closes it.
	const fd = await promisify(openDescriptor)(path, constants.O_RDONLY | constants.O_NONBLOCK);
	return readBounded(new Socket({ fd, readable: true, writable: false }), path, maxBytes);
}

function badFile(path: string, state: string, cause?: unknown): KvasirError {
	return new KvasirError("bad_file", `Cannot read ${path}: ${state}`, cause === undefined ? {} : { cause });
}
