import { resolve } from "node:path";
import { exitCodes, KvasirError } from "../../errors.ts";
import { type EngineName, engineNames } from "../../experts/open-engine.ts";
import type { EvidenceReport } from "../../verify/evidence.ts";
import type { VerifyReport } from "../../verify/report.ts";
import { modelOptions } from "../model/model-options.ts";
import { defineCommand, type Outcome } from "../program/command.ts";
import type { Context } from "../program/context.ts";
import { list, type OptionValues, toggle, value } from "../program/options.ts";
import { count, hostPort, layers, oneOf, path, text } from "../program/readers.ts";
import { workerKind } from "../worker-kinds.ts";
import { describeEvidence } from "./describe-evidence.ts";
import { describeVerify } from "./describe-verify.ts";

const options = {
	...modelOptions,
	engine: value("--engine <engine>", "what computes: canonical, and f32 with --reference", oneOf(...engineNames)),
	prompts: list("--prompt <text>", "decode this; repeatable; The capital of France is without it", text),
	tokens: value("--tokens <n>", "tokens to generate for each prompt", count(1, 100_000), 8),
	workers: value("--workers <n>", "worker processes to start; 2 without it", count(1, 64)),
	kinds: list(
		"--worker <kind>",
		"start one of this kind: cpu, onnx, also cpu:threads=2, gpu=ID, onnx-gpu=ID; repeatable",
		workerKind,
	),
	hub: value("--hub <host:port>", "park at this hub and use its workers instead of starting any", hostPort),
	layers: value("--layers <layers>", "layers whose experts are computed remotely", layers, "all"),
	mode: value(
		"--mode <n>",
		"0: every pair comes back; 1: workers sum a row where they hold all its experts",
		count(0, 1),
		0,
	),
	dtype: value(
		"--dtype <type>",
		"how rows travel: f32, or q14; q14 where the layer and the worker allow",
		oneOf("f32", "q14"),
	),
	batch: value("--batch <n>", "prompts decoded together in the remote run", count(1, 16), 1),
	reference: value("--reference <file>", "compare one local run with these recorded outputs instead", path),
	evidence: value("--evidence <file>", "replay this failed audit instead", path),
	strict: toggle("--strict", "anything but identical exits 3"),
	allowFallback: toggle("--allow-fallback", "experts computed here do not make the run incomplete"),
	requireWeights: toggle("--require-weights", "no synthetic model where no weights are registered"),
	wait: value("--wait <seconds>", "how long no worker may have more experts ready", count(1, 86_400), 60),
	junit: value("--junit <file>", "also write the result as JUnit XML", path),
};

type Chosen = OptionValues<typeof options>;
export type VerifyOptions = Omit<Chosen, "engine"> & { readonly engine: EngineName };

export const verifyCommand = defineCommand({
	path: "verify",
	section: "verify",
	summary: "decode locally and through the swarm, compare every position and every partial",
	options,
	example: "kvasir verify --model tiny --workers 3 --layers all --json",
	async run(context, chosen): Promise<Outcome<VerifyReport | EvidenceReport>> {
		const engine = chosen.engine ?? (chosen.reference ? "f32" : modelOptions.engine.fallback);
		checkChoice(chosen);
		if (chosen.evidence !== undefined) return replay(context, chosen.evidence, { ...chosen, engine });
		const [{ exitCodeOf }, { checkWritable, writeReports }] = await Promise.all([
			import("../../verify/verdict.ts"),
			import("./verify-files.ts"),
		]);
		if (chosen.junit !== undefined) await checkWritable(chosen.junit);
		const report = await verify(context, { ...chosen, engine });
		await writeReports(report, { junit: chosen.junit, stepSummary: context.host.env.GITHUB_STEP_SUMMARY });
		return { data: report, exitCode: exitCodeOf(report.verdict, { strict: chosen.strict }) };
	},
	render: (report) => ("reproduced" in report ? describeEvidence(report) : describeVerify(report)),
});

function checkChoice({ workers, kinds }: Chosen): void {
	if (workers === undefined || kinds.length === 0) return;
	throw new KvasirError("usage", "Cannot verify: --workers and --worker both say how many workers to start", {
		hint: "Say --worker once for each, or --workers alone",
	});
}

/** Exit 3 where the replay finds another answer than the backbone's audit did. */
async function replay(
	context: Context,
	path: string,
	{ model, engine, threads }: VerifyOptions,
): Promise<Outcome<EvidenceReport>> {
	const { verifyEvidence } = await import("./verify-evidence.ts");
	const data = await context.progress("replaying the audit", () =>
		verifyEvidence(context, resolve(path), { model, engine, threads }),
	);
	return { data, exitCode: data.verdict === "wrong" ? 0 : exitCodes.different };
}

async function verify(context: Context, chosen: VerifyOptions): Promise<VerifyReport> {
	const { clock, signal, home } = context;
	const { model, engine, threads, requireWeights } = chosen;
	if (chosen.reference === undefined) {
		const { verifyThroughSwarm } = await import("./verify-through-swarm.ts");
		return verifyThroughSwarm(context, chosen);
	}
	const { verifyReference } = await import("../../verify/reference.ts");
	const referencePath = resolve(chosen.reference);
	const settings = { home, model, engine, threads, requireWeights };
	return context.progress("comparing with the reference", () =>
		verifyReference({ referencePath, settings, clock, signal }),
	);
}
