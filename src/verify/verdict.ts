import type { PartialsReport } from "../backbone/decode/partials-check.ts";
import type { Verdict, VerifyReport } from "./report.ts";

/** Every position's logits must be this close for `equivalent` (numerics.md section 1). */
const leastCosine = 0.99;

/** What a verdict is made of. */
export interface VerdictFacts {
	/** Everything that should have been computed elsewhere was. */
	readonly complete: boolean;
	/** Engine classes of this backbone and of every worker that answered. */
	readonly classes: readonly string[];
	readonly tokens: { readonly same: number; readonly total: number };
	readonly argmax: VerifyReport["argmax"];
	readonly logits: Pick<VerifyReport["logits"], "identical" | "cosineMin">;
	readonly partials: Pick<PartialsReport, "pairs" | "identical" | "tolerable">;
}

/** numerics.md section 1: a wrong answer is `different` even where something else was not answered at all. */
export function verdictOf({ complete, classes, tokens, argmax, logits, partials }: VerdictFacts): Verdict {
	const sameChoices = tokens.same === tokens.total && argmax.same === argmax.total;
	const promisesBytes = classes.every((name) => name === classes[0]) && isExact(classes[0]!);
	const identical = sameChoices && logits.identical && partials.identical === partials.pairs;
	const equivalent = sameChoices && logits.cosineMin >= leastCosine && partials.tolerable === partials.pairs;
	if (promisesBytes ? !identical : !equivalent) return "different";
	if (!complete) return "incomplete";
	return promisesBytes ? "identical" : "equivalent";
}

function isExact(engineClass: string): boolean {
	return engineClass === "canonical-1" || engineClass === "f32";
}

/** The exit code of a verify: 0, 1 incomplete, 3 different (or, strictly, anything but identical). */
export function exitCodeOf(verdict: Verdict, { strict = false } = {}): 0 | 1 | 3 {
	if (verdict === "different" || (strict && verdict !== "identical")) return 3;
	return verdict === "incomplete" ? 1 : 0;
}
