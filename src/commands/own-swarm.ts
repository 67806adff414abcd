import { fileURLToPath } from "node:url";
import { builtUrl } from "../io/built.ts";
import { resolveModel } from "../model/resolve-model.ts";
import { type Swarm, type SwarmPlan, startSwarm } from "../swarm/swarm.ts";
import type { Context } from "./context.ts";

type OwnPlan = Pick<SwarmPlan, "home" | "backbones" | "workers"> & { readonly model: string };

/** Starts gateway, hub and workers of this very program as child processes on loopback. */
export async function startOwnSwarm({ host, clock, home }: Context, { model, ...plan }: OwnPlan): Promise<Swarm> {
	const reference = await resolveModel(home, model);
	return startSwarm({
		...plan,
		// The children have homes of their own, where names registered in ours mean nothing.
		model: reference.kind === "file" ? reference.path : reference.name,
		execPath: host.execPath,
		cliPath: fileURLToPath(builtUrl(import.meta.url, "../../bin/kvasir.js")),
		env: childEnvironment(host.env),
		clock,
	});
}

/** What children inherit: nothing that configures Kvasir (they get words for that) but the hooks of tests, and nothing that colours. */
function childEnvironment(env: Context["host"]["env"]): Record<string, string | undefined> {
	const kept = Object.entries(env).filter(([name]) => !/^(KVASIR_(?!TEST_)|FORCE_COLOR$)/.test(name));
	return { ...Object.fromEntries(kept), NO_COLOR: "1" };
}
