import { formatCount, formatCounted, formatMs } from "../../io/format-amounts.ts";
import { formatFacts, formatTable } from "../../ui/table.ts";
import type { VerifyReport } from "../../verify/report.ts";

/** The report for people: the verdict last, where the eye ends. */
export function describeVerify(report: VerifyReport): string {
	const { model, remote, wire, tokens, argmax, logits, partials, served, timing, firstDivergence } = report;
	const synthetic = model.weights === "synthetic" ? ", synthetic weights" : "";
	const facts = formatFacts([
		[
			"model",
			`${model.name}${synthetic}: ${formatCounted(model.layers, "layer")}, ${model.experts} experts, top ${model.topK}`,
		],
		["text", JSON.stringify(tokens.text)],
		["tokens", `${tokens.same} of ${tokens.total} the same`],
		["argmax", `${argmax.same} of ${argmax.total} positions the same`],
		["logits", logits.identical ? "identical" : `cosine ${logits.cosineMin} or more, off by ${logits.maxAbs} at most`],
		...(remote.layers.length > 0
			? ([
					[
						"remote",
						`layers ${remote.layers.join(", ")}: ${remote.answered} of ${remote.asked} pairs, ${remote.fallback} here`,
					],
					["partials", `${partials.identical} of ${partials.pairs} identical, worst ${partials.worst}`],
					[
						"wire",
						`${formatCount(wire.bytesSent)} bytes of rows, ${formatCount(wire.bytesReceived)} of vectors; of ${wire.messages} dispatches ${wire.wholeRows} summed whole rows, ${wire.q14} carried q14`,
					],
					["served", `${formatCount(served.bytes)} bytes, ${served.units} units, ${served.kvr} KVR`],
				] as const)
			: []),
		[
			"pace",
			`${timing.localTokensPerSecond.toFixed(1)} positions a second local, ${timing.remoteTokensPerSecond.toFixed(1)} remote`,
		],
	]);
	const workers = remote.workers.map((worker) => [
		...[worker.key, worker.class, worker.pairs, formatMs(worker.rttMsP50), formatMs(worker.computeMsP50)],
	]);
	const table =
		workers.length > 0 ? [formatTable(["worker", "engine", "pairs", "round trip", "compute"], workers)] : [];
	const where = firstDivergence === null ? [] : [`first divergence: ${JSON.stringify(firstDivergence)}`];
	return [facts, ...table, ...where, `verdict: ${report.verdict}`].join("\n\n");
}
