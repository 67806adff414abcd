import { mkdir, open, readFile, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { KvasirError } from "../errors.ts";

/** Makes a folder that its owner alone can look into; one that is there stays as it is. */
export async function makePrivateFolder(path: string): Promise<string> {
	await mkdir(path, { recursive: true, mode: 0o700 });
	return path;
}

/** Writes a file so that a reader, or a crash, sees the old bytes or the new ones; readable by its owner alone. */
export async function writePrivateFile(path: string, contents: string | Uint8Array): Promise<void> {
	await makePrivateFolder(dirname(path));
	const draft = `${path}.new`;
	const file = await open(draft, "w", 0o600);
	try {
		await file.writeFile(contents);
		await file.sync();
	} finally {
		await file.close();
	}
	await rename(draft, path);
}

/** The bytes of a file of at most `maxBytes`; null where there is none. Throws `bad_file`. */
export async function readSmallFile(path: string, maxBytes: number): Promise<Buffer | null> {
	try {
		const { size } = await stat(path);
		if (size > maxBytes) throw new KvasirError("bad_file", `Cannot read ${path}: ${size} bytes, more than ${maxBytes}`);
		return await readFile(path);
	} catch (cause) {
		if (cause instanceof KvasirError) throw cause;
		const { code, message } = cause as NodeJS.ErrnoException;
		if (code === "ENOENT" || code === "ENOTDIR") return null;
		throw new KvasirError("bad_file", `Cannot read ${path}: ${code ?? message}`, { cause });
	}
}
