import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that is gone when the test that asked for it is over. */
export async function temporaryHome(): Promise<string> {
	const home = await mkdtemp(join(tmpdir(), "kvasir-test-"));
	onTestFinished(() => rm(home, { recursive: true, force: true }));
	return home;
}
