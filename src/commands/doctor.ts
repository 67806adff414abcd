import { engineNames } from "../experts/open-engine.ts";
import { formatMs } from "../io/format-amounts.ts";
import { formatTable } from "../ui/table.ts";
import { defineCommand } from "./program/command.ts";
import type { Context } from "./program/context.ts";
import { toggle, value } from "./program/options.ts";
import { count, path, text } from "./program/readers.ts";

export const doctorCommand = defineCommand({
	path: "doctor",
	section: "doctor",
	summary: "check this machine by doing: disk, keys, engines, clock, gateway",
	options: {
		gateway: value("--gateway <url>", "also ask this gateway, and hold links to it", text),
		idle: value(
			"--idle <seconds>",
			"with --gateway: measure up to this for how long the path leaves a silent link open",
			count(5, 300),
			20,
		),
		ca: value("--ca <file>", "also trust this certificate authority, PEM", path),
		insecure: toggle("--insecure", "allow ws:// beyond this machine"),
	},
	example: "kvasir doctor --gateway wss://gate.example",
	async run(context, { gateway, ca, insecure, idle }) {
		const { runChecks } = await import("../doctor/check.ts");
		const { openGatewayChecks } = await import("./gateway-checks.ts");
		const asked = gateway ? await openGatewayChecks(context, { gateway, ca, insecure, idle }) : null;
		const checks = [...(await machineChecks(context)), ...(asked?.checks ?? [])];
		const results = await context
			.progress("checking", (say) => runChecks(checks, { clock: context.clock, signal: context.signal, report: say }))
			.finally(() => asked?.close());
		const healthy = results.every(({ state }) => state !== "failed");
		return { data: { healthy, checks: results }, exitCode: healthy ? 0 : 1 };
	},
	render({ checks }) {
		const rows = checks.map(({ name, state, found, ms }) => [state, name, found, formatMs(ms)]);
		const hints = checks.flatMap(({ name, hint, state }) => (hint && state !== "ok" ? [`${name}: ${hint}`] : []));
		return [formatTable(["", "check", "found", "took"], rows), ...hints].join("\n");
	},
});

async function machineChecks({ host, home, clock }: Context) {
	const [machine, { engineCheck }, { openEngine }, { openNamedModel }, gpu] = await Promise.all([
		import("../doctor/machine-checks.ts"),
		import("../doctor/engine-check.ts"),
		import("../experts/open-engine.ts"),
		import("../model/resolve-model.ts"),
		openGpuCheck(clock),
	]);
	return [
		machine.nodeCheck(host.nodeVersion),
		machine.homeCheck(home, host.platform),
		machine.memoryCheck(host.availableMemory()),
		...engineNames.map((engine) =>
			engineCheck(engine, {
				openEngine: (hidden) => openEngine({ engine, hidden, threads: 1, memoryBytes: 2 ** 30 }),
				openModel: () => openNamedModel(home, "tiny"),
				clock,
			}),
		),
		gpu,
	];
}

async function openGpuCheck(clock: Context["clock"]) {
	const [{ gpuCheck }, { askAdapters }, { proveGpu }] = await Promise.all([
		import("../doctor/gpu-check.ts"),
		import("../experts/gpu/ask-adapters.ts"),
		import("../experts/gpu/prove-gpu.ts"),
	]);
	return gpuCheck({ listAdapters: () => askAdapters(clock), prove: (adapter) => proveGpu(adapter, clock) });
}
