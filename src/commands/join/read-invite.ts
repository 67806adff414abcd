import { KvasirError } from "../../errors.ts";
import { readSmallFile } from "../../io/files.ts";

/** The code in an invite file: its first line. Throws `not_admitted`. */
export async function readInvite(path: string): Promise<string> {
	const bytes = await readSmallFile(path, 1024);
	const code = bytes?.toString("utf8").split("\n", 1).at(0)?.trim();
	if (code && /^[\x21-\x7e]+$/.test(code)) return code;
	throw new KvasirError(
		"not_admitted",
		`Cannot use the invite ${path}: ${bytes === null ? "no such file" : "no code in its first line"}`,
		{
			hint: "kvasir gateway invite create prints a code, once",
		},
	);
}
