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

let reached: ((name: Failpoint) => void) | null = null;

/** The process is at this point. Does nothing unless a test armed the points (arm-failpoints.ts); knows nothing of Node. */
export function failpoint(name: Failpoint): void {
	reached?.(name);
}

/** From now on `fn` is called at every point; null: nothing is. */
export function onFailpoint(fn: ((name: Failpoint) => void) | null): void {
	reached = fn;
}
