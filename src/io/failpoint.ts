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

let armed: { readonly name: string; hits: number } | null = null;

/** Ends the process here when this point is armed and has been passed often enough. */
export function failpoint(name: Failpoint): void {
	if (armed === null || armed.name !== name || --armed.hits > 0) return;
	process.kill(process.pid, "SIGKILL");
}

/** Arms one point: `hub.group.after` at its first hit, `hub.group.after:3` at its third. Anything else arms nothing. */
export function armFailpoint(text: string | null | undefined): void {
	const [name = "", hits = "1"] = (text ?? "").split(":");
	armed = (failpoints as readonly string[]).includes(name) ? { name, hits: Number(hits) } : null;
}

/** What is armed, for a thread to arm it too. */
export function armedFailpoint(): string | null {
	return armed === null ? null : `${armed.name}:${armed.hits}`;
}
