import { cpus } from "node:os";
import type { ExpertEngine } from "../../experts/engine.ts";
import type { EngineFacts } from "../../protocol/messages.ts";
import type { Context, Event } from "../program/context.ts";
import type { JoinOptions } from "./join.ts";

/** The machine's CPU, as a worker names it. */
export function cpuName(): string {
	return (cpus()[0]?.model ?? "cpu").trim().slice(0, 64);
}

/**
 * What hello says of a worker's engine, once this machine has shown that it computes the class's bytes: a device by the proof
 * that came with it, a CPU here; and the event that tells of it. Throws `engine_failed` where the self-check fails.
 */
export async function checkedEngineFacts(
	{ host }: Context,
	{ engineClass, proof }: ExpertEngine,
	{ threads, memoryBytes }: Pick<JoinOptions, "threads"> & { readonly memoryBytes: number },
): Promise<{ readonly engineFacts: Omit<EngineFacts, "class">; readonly event: Event }> {
	const device = proof ? `${proof.id} ${proof.name}`.slice(0, 64) : cpuName();
	const check = proof ? { digest: proof.selfCheck, ms: proof.selfCheckMs } : await checkCpu(engineClass, threads);
	const selfCheck = statedDigest(host.env) ?? check.digest;
	return {
		engineFacts: { device, memoryBytes, threads, selfCheck },
		event: {
			event: "engine",
			...{ class: engineClass, device, threads },
			selfCheck: Buffer.from(selfCheck).toString("hex"),
			selfCheckMs: Math.round(check.ms),
		},
	};
}

/** Other classes promise no bits: nothing to check. */
async function checkCpu(engineClass: string, threads: number): Promise<{ digest: Uint8Array; ms: number }> {
	if (engineClass !== "canonical-1") return { digest: new Uint8Array(0), ms: 0 };
	const { checkThisMachine } = await import("../../experts/machine-self-check.ts");
	return checkThisMachine(threads);
}

/** For tests of what refuses another kernel: KVASIR_TEST_SELF_CHECK=HEX is stated in hello, only under NODE_ENV=test. */
function statedDigest(env: Context["host"]["env"]): Uint8Array | undefined {
	const stated = env.NODE_ENV === "test" ? env.KVASIR_TEST_SELF_CHECK : undefined;
	return stated === undefined ? undefined : Uint8Array.from(Buffer.from(stated, "hex"));
}
