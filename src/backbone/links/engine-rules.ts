import { canonicalDigest } from "../../experts/self-check.ts";
import type { EngineFacts } from "../../protocol/messages.ts";

/** Why a worker's engine is not taken: the code of its goodbye, and what stands against it. */
export interface EngineRefusal {
	readonly code: "engine_class" | "self_check";
	readonly text: string;
}

/** The start of the engine classes that a user's name stands for (docs/numerics.md, classes). */
export const classPrefixes = { canonical: "canonical-1", f32: "f32", onnx: "ort:" } as const;

/**
 * Whether a backbone may use a worker's engine: of an accepted class, and a canonical-1 engine with the digest that this
 * program's own kernels have.
 *
 * @param accepted class names, or their start where it ends with a colon; null: any class
 */
export function refuseEngine(
	{ class: name, selfCheck }: Pick<EngineFacts, "class" | "selfCheck">,
	accepted: readonly string[] | null,
): EngineRefusal | null {
	if (accepted !== null && !accepted.some((known) => (known.endsWith(":") ? name.startsWith(known) : name === known))) {
		return {
			code: "engine_class",
			text: `the engine ${name.slice(0, 64)} is not accepted here, only ${accepted.join(", ")}`,
		};
	}
	if (name !== classPrefixes.canonical) return null;
	const digest = Buffer.from(selfCheck).toString("hex");
	if (digest === canonicalDigest) return null;
	const stated = digest === "" ? "no self-check was stated" : `its self-check gave ${digest.slice(0, 16)}`;
	return { code: "self_check", text: `${stated}, canonical-1 is ${canonicalDigest.slice(0, 16)} here` };
}
