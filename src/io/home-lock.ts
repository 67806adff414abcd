import { join } from "node:path";
import { KvasirError } from "../errors.ts";
import { systemErrorWords } from "./system-error.ts";

/** What one process at a time does in a home. */
export type HomeRole = "hub" | "gateway" | "worker";

export interface HomeLock {
	/** Again: nothing. */
	release(): void;
}

/**
 * Takes a home for one role: a write transaction on an empty database, which the operating system ends with the process, however
 * that ends. Throws `home_in_use` where another process has it, `bad_file`.
 */
export async function lockHome(home: string, role: HomeRole): Promise<HomeLock> {
	const path = join(home, `${role}.lock`);
	const { default: Libsql } = await import("libsql");
	try {
		const file = new Libsql(path);
		file.exec("BEGIN IMMEDIATE");
		let released = false;
		return {
			release() {
				if (released) return;
				released = true;
				file.exec("ROLLBACK");
				file.close();
			},
		};
	} catch (cause) {
		if (!/locked|busy/i.test(String(cause))) {
			throw new KvasirError("bad_file", `Cannot lock ${path}: ${systemErrorWords(cause)}`, { cause });
		}
		throw new KvasirError("home_in_use", `Cannot start a ${role} in ${home}: another one runs there`, {
			hint: "Stop it, or give each a --home of its own",
		});
	}
}
