import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Host } from "./host.ts";

/** Runs `work` with a folder that is gone afterwards, whatever happened, a second Ctrl-C included. */
export async function withTemporaryFolder<T>(
	host: Pick<Host, "onExit">,
	work: (folder: string) => Promise<T>,
): Promise<T> {
	const folder = await mkdtemp(join(tmpdir(), "kvasir-"));
	const off = host.onExit(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
	try {
		return await work(folder);
	} finally {
		await rm(folder, { recursive: true, force: true, maxRetries: 3 });
		off();
	}
}
