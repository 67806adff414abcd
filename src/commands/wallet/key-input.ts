import { KvasirError } from "../../errors.ts";
import { readBounded, readSmallFile } from "../../io/files.ts";
import type { Context } from "../program/context.ts";

const keyBytesMax = 16_384;
const hint = "Name the file that holds it; - reads it from stdin";

/** A key's text (PEM, Solana key file, words) from a file, or from stdin (`-`), where a terminal is asked without showing what is typed. */
export async function readKeyInput(context: Context, file: string): Promise<string> {
	if (file === "-") {
		const { stdin } = context.host;
		if (stdin.isTTY === true) return context.askSecret("Words or key", hint);
		return (await readBounded(stdin, "stdin", keyBytesMax)).toString("utf8");
	}
	const bytes = await readSmallFile(file, keyBytesMax);
	if (bytes === null) throw new KvasirError("file_missing", `Cannot read the key ${file}: no such file`, { hint });
	return bytes.toString("utf8");
}

/** Whether a key's text needs a passphrase to be read. */
export function isEncryptedKey(text: string): boolean {
	return text.includes("-----BEGIN ENCRYPTED");
}
