import { readFileSync, unlinkSync } from "node:fs";

// Named places where a test ends the process with SIGKILL, so that what a crash there leaves behind is seen (test/crash).
// Armed only by commands under NODE_ENV=test, and by the threads they start; otherwise a call looks at one variable.

/** Before and after each write, send and acknowledgement of what becomes money, in the order of its way. */
export const failpoints = [
	"backbone.dispatch.before",
	"backbone.dispatch.after",
	"worker.answer.before",
	"worker.answer.after",
	"backbone.accept.before",
	"backbone.accept.after",
	"backbone.issue.before",
	"backbone.issue.after",
	"backbone.receipt.after",
	"worker.receipt.before",
	"worker.countersign.before",
	"worker.countersign.after",
	"worker.keep.before",
	"worker.keep.after",
	"backbone.answer.before",
	"backbone.answer.after",
	"backbone.post.before",
	"backbone.post.after",
	"backbone.acknowledged.before",
	"backbone.acknowledged.after",
	"backbone.retire.before",
	"backbone.retire.after",
	"hub.receipt.before",
	"hub.group.before",
	"hub.group.after",
	"hub.receipt.after",
	"hub.relays.before",
	"hub.relays.after",
	"hub.page.before",
	"hub.page.after",
	"gateway.credit.before",
	"gateway.group.before",
	"gateway.group.after",
	"gateway.credit.after",
	"gateway.claim.before",
	"gateway.claim.after",
] as const;
export type Failpoint = (typeof failpoints)[number];

/** The file that names the point to end at; null: nothing is armed. */
let file: string | null = null;

/** Ends the process here when the file names this point; the file goes with it, so that the process that follows lives on. */
export function failpoint(name: Failpoint): void {
	if (file === null || wanted(file) !== name) return;
	unlinkSync(file);
	process.kill(process.pid, "SIGKILL");
}

/** From now on `path` is looked at in every point: a test writes a point's name there when it wants the process to end. */
export function armFailpoints(path: string | null | undefined): void {
	file = path || null;
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
