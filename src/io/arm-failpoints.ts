import { readFileSync, unlinkSync } from "node:fs";
import { onFailpoint } from "./failpoint.ts";

let file: string | null = null;

/**
 * From now on the process ends with SIGKILL at the point that the file at `path` names, whenever a test writes one there. The
 * file goes with it, so that the process that follows lives on. Nothing is armed without a path.
 */
export function armFailpoints(path: string | null | undefined): void {
	file = path || null;
	onFailpoint(
		file === null
			? null
			: (name) => {
					if (wanted(file!) !== name) return;
					unlinkSync(file!);
					process.kill(process.pid, "SIGKILL");
				},
	);
}

/** What was armed, for a thread to arm it too. */
export function armedFailpoints(): string | null {
	return file;
}

function wanted(path: string): string | null {
	try {
		return readFileSync(path, "utf8");
	} catch {
		return null;
	}
}
