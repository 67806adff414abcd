import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { KvasirError } from "../../errors.ts";
import type { Host } from "./host.ts";

/** Asks on the terminal without showing what is typed. Throws `usage` with `hint` where stdin is no terminal. */
export async function askSecret(host: Host, question: string, hint: string): Promise<string> {
	if (host.stdin.isTTY !== true || host.stderr.isTTY !== true) {
		throw new KvasirError("usage", `Cannot ask for "${question}": stdin is not a terminal`, { hint });
	}
	const silence = new Writable({ write: (_chunk, _encoding, done) => done() });
	const lines = createInterface({ input: host.stdin, output: silence, terminal: true });
	host.stderr.write(`${question}: `);
	try {
		return await lines.question("");
	} finally {
		lines.close();
		host.stderr.write("\n");
	}
}
