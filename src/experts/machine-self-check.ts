import { Worker } from "node:worker_threads";
import { errorFromPlain, KvasirError, type PlainError } from "../errors.ts";
import { builtUrl } from "../io/built.ts";
import type { Clock } from "../io/clock.ts";
import { canonicalDigest, type SelfCheckSubject, selfCheck } from "./self-check.ts";

/** A passed known-answer test of canonical-1. */
export interface PassedSelfCheck {
	/** SHA-256 of all outputs. */
	readonly digest: Uint8Array;
	readonly ms: number;
}

/** What the thread of self-check-thread.ts answers. */
export type SelfCheckReply = { readonly passed: PassedSelfCheck } | { readonly error: PlainError };

/**
 * Runs the self-check on this machine's CPU, with as many threads as the work will have, in a thread of its own. Throws
 * `engine_failed` where the answer is not canonical-1's: such a machine must not join.
 */
export function checkThisMachine(threads: number): Promise<PassedSelfCheck> {
	const thread = new Worker(builtUrl(import.meta.url, "./self-check-thread.js"), { workerData: threads });
	const answer = new Promise<PassedSelfCheck>((resolve, reject) => {
		thread.once("message", (reply: SelfCheckReply) => {
			if ("passed" in reply) resolve(reply.passed);
			else reject(errorFromPlain(reply.error));
		});
		const gone = (cause: unknown) =>
			reject(new KvasirError("engine_failed", "Cannot check this machine: the thread that did has ended", { cause }));
		thread.once("error", gone).once("exit", gone);
	});
	return answer.finally(() => thread.terminate());
}

/** Throws `engine_failed` unless the subject gives the digest of canonical-1. */
export async function passSelfCheck(
	subject: SelfCheckSubject,
	clock: Pick<Clock, "monotonic">,
): Promise<PassedSelfCheck> {
	const startMs = clock.monotonic();
	const digest = await selfCheck(subject);
	if (digest !== canonicalDigest) {
		const state = `the self-check gave ${digest.slice(0, 16)}, not ${canonicalDigest.slice(0, 16)}`;
		throw new KvasirError("engine_failed", `Cannot compute as canonical-1 on this machine: ${state}`, {
			hint: "Its CPU, its memory or this Node computes other bits: try another Node version, then kvasir doctor",
			facts: { digest, expected: canonicalDigest },
		});
	}
	return { digest: Uint8Array.from(Buffer.from(digest, "hex")), ms: clock.monotonic() - startMs };
}
