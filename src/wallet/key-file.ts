import { randomUUID } from "node:crypto";
import { constants, copyFile, link, open, stat, unlink } from "node:fs/promises";
import { platform } from "node:os";
import { dirname } from "node:path";
import { KvasirError } from "../errors.ts";
import { makePrivateFolder, readSmallFile } from "../io/files.ts";
import { systemError } from "../io/system-error.ts";

const keyFileBytesMax = 16_384;

/** The text of a key file; null where there is none. Throws `bad_key` when others than its owner may read it. */
export async function readKeyFile(path: string): Promise<string | null> {
	const bytes = await readSmallFile(path, keyFileBytesMax);
	if (bytes === null) return null;
	const { mode } = await stat(path);
	if (platform() !== "win32" && (mode & 0o077) !== 0) {
		throw new KvasirError("bad_key", `Cannot use the key ${path}: others can read it`, { hint: `chmod 600 ${path}` });
	}
	return bytes.toString("utf8");
}

/** Writes a key file that is not there yet, whole or not at all, 0600. False when there is one: it is left as it is. Throws `disk_full`, `bad_file`. */
export async function createKeyFile(path: string, text: string): Promise<boolean> {
	await makePrivateFolder(dirname(path));
	const draft = `${path}.${randomUUID()}.new`;
	const refused = (cause: unknown) => systemError(cause, `write ${path}`) ?? cause;
	const file = await open(draft, "wx", 0o600).catch((cause) => {
		throw refused(cause);
	});
	try {
		await file.writeFile(text);
		await file.sync();
		await file.close();
		// A file system without links gets a copy, which is not there at once but still never replaces anything.
		await link(draft, path).catch((error: NodeJS.ErrnoException) => {
			if (error.code === "EEXIST") throw error;
			return copyFile(draft, path, constants.COPYFILE_EXCL);
		});
		return true;
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
		throw refused(error);
	} finally {
		await file.close().catch(() => {});
		await unlink(draft);
	}
}
