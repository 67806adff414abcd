import { KvasirError } from "../../errors.ts";
import { readSmallFile } from "../../io/files.ts";
import type { Context } from "../program/context.ts";
import { named, value } from "../program/options.ts";
import { path } from "../program/readers.ts";

const hint = "Give it with --passphrase-file FILE or KVASIR_PASSPHRASE_FILE; the first line counts";

export const passphraseFile = named(
	"KVASIR_PASSPHRASE_FILE",
	value("--passphrase-file <file>", "the passphrase is the first line of this file", path),
);

/** The wallet's passphrase: a file's first line, else asked for on the terminal; twice where a new one is chosen. */
export async function readPassphrase(
	context: Context,
	file: string | undefined,
	use: "open" | "choose",
): Promise<string> {
	if (file !== undefined) return firstLine(file);
	const passphrase = await context.askSecret("Passphrase", hint);
	if (use === "choose" && (await context.askSecret("Again", hint)) !== passphrase) {
		throw new KvasirError("passphrase", "Cannot use the passphrase: the two are not the same");
	}
	return passphrase;
}

async function firstLine(file: string): Promise<string> {
	const bytes = await readSmallFile(file, 4096);
	if (bytes === null) throw new KvasirError("file_missing", `Cannot read the passphrase file ${file}: no such file`);
	return bytes.toString("utf8").split(/\r?\n/)[0]!;
}
