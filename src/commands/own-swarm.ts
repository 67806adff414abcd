import { fileURLToPath } from "node:url";
import { type Backbone, startBackbone } from "../backbone/backbone.ts";
import { addressOf } from "../io/base58.ts";
import { builtUrl } from "../io/built.ts";
import type { KeyPair } from "../io/crypto.ts";
import type { Model } from "../model/model.ts";
import { resolveModel } from "../model/resolve-model.ts";
import type { ModelShape } from "../model/shape.ts";
import { splitExperts, splitLayers } from "../swarm/expert-split.ts";
import { type Swarm, type SwarmPlan, startSwarm, type WorkerPlan } from "../swarm/swarm.ts";
import { loadNodeKey } from "../wallet/node-key.ts";
import { untilParked } from "./backbone/until-parked.ts";
import { modelFactsOf } from "./model/model-facts.ts";
import type { Context } from "./program/context.ts";
import { dialAt } from "./program/listen-at.ts";
import { type HostPort, hostPort } from "./program/readers.ts";
import { withTemporaryFolder } from "./program/temporary-folder.ts";
import type { WorkerKind } from "./worker-kinds.ts";

const patientMs = 20_000;
const drainMs = 5_000;

/** Starts gateway, hub and workers of this very program as child processes on loopback. */
export async function startOwnSwarm(
	{ host, clock, home, signal }: Context,
	{ model, ...plan }: Pick<SwarmPlan, "home" | "backbones" | "workers" | "model" | "workersVia" | "gatewayArgs">,
): Promise<Swarm> {
	const reference = await resolveModel(home, model);
	const kills: (() => void)[] = [];
	host.onExit(() => {
		for (const kill of kills) kill();
	});
	return startSwarm({
		...plan,
		// The children have homes of their own, where names registered in ours mean nothing.
		model: reference.kind === "file" ? reference.path : reference.name,
		execPath: host.execPath,
		cliPath: fileURLToPath(builtUrl(import.meta.url, "../../bin/kvasir.js")),
		env: childEnvironment(host.env),
		clock,
		signal,
		onSpawn: (kill) => kills.push(kill),
	});
}

/** Worker processes that share the experts of a model, and what they compute with. */
export interface WorkerChoice {
	readonly model: string;
	readonly engine: string;
	readonly threads: number;
	readonly workers: number;
	/** One worker of each kind, instead of `workers` alike. */
	readonly kinds?: readonly WorkerKind[];
	/** A relay that workers dial in the gateway's place. */
	readonly workersVia?: SwarmPlan["workersVia"];
	/** Workers share the layers, so that each can sum whole rows. @default they share each layer's experts */
	readonly wholeLayers?: boolean;
}

type ModelDims = Pick<ModelShape, "layers" | "experts">;

/** Runs `work` with a swarm of its own: a hub that lists `identity`, a gateway, and workers; nothing of it is left. */
export function withOwnSwarm<T>(
	context: Context,
	choice: WorkerChoice,
	shape: ModelDims,
	work: (hub: HostPort, identity: KeyPair) => Promise<T>,
): Promise<T> {
	return withTemporaryFolder(context.host, async (folder) => {
		const identity = await loadNodeKey(folder);
		const swarm = await context.progress("starting workers", () =>
			startOwnSwarm(context, {
				home: folder,
				model: choice.model,
				...(choice.workersVia && { workersVia: choice.workersVia }),
				backbones: [addressOf(identity.publicKey)],
				workers: workerPlans(choice, shape, context.host.env),
			}),
		);
		try {
			return await Promise.race([work(hostPort.read(swarm.hubRelay)!, identity), swarm.failure]);
		} finally {
			await swarm.stop();
		}
	});
}

function workerPlans(
	{ engine, threads, workers, kinds = [], wholeLayers }: WorkerChoice,
	{ layers, experts }: ModelDims,
	env: Context["host"]["env"],
): WorkerPlan[] {
	const alike = Array.from({ length: workers }, () => ["--engine", engine]);
	const chosen = kinds.length > 0 ? kinds : alike;
	const holds = wholeLayers ? splitLayers(layers, chosen.length) : splitExperts(experts, chosen.length);
	const command = workerCommand(env);
	return chosen.map((kind, index) => ({
		hold: [holds[index]!],
		args: ["--threads", String(threads), ...kind],
		...(command && index === chosen.length - 1 && { command }),
	}));
}

/** For tests over processors: KVASIR_TEST_WORKER_COMMAND, a JSON list, runs the last worker; only under NODE_ENV=test. */
function workerCommand(env: Context["host"]["env"]): string[] | undefined {
	const text = env.NODE_ENV === "test" ? env.KVASIR_TEST_WORKER_COMMAND : undefined;
	return text === undefined ? undefined : (JSON.parse(text) as string[]);
}

/** Runs `work` with a backbone parked at a hub, once every expert of the layers has a holder; it says goodbye afterwards. */
export async function withBackbone<T>(
	context: Context,
	options: {
		readonly model: Model;
		readonly hub: HostPort;
		readonly identity: KeyPair;
		readonly layers: readonly number[];
		readonly waitMs: number;
		/** False: every answer is single pairs. */
		readonly wholeRows: boolean;
	},
	work: (backbone: Backbone) => Promise<T>,
): Promise<T> {
	const { clock, random, log, signal, progress } = context;
	const { identity, layers, wholeRows } = options;
	// Every pair is asked once and waited for: counts are exact, and a busy machine is no reason to compute here.
	const parts = { identity, wholeRows, hedge: false, deadlineMs: patientMs, clock, random, log };
	const backbone = await startBackbone({ model: modelFactsOf(options.model), hub: dialAt(options.hub), ...parts });
	try {
		await untilParked(context, backbone, { required: true });
		const waiting = { timeoutMs: options.waitMs, signal };
		await progress("waiting for workers", () => backbone.waitForCoverage(layers, waiting));
		return await work(backbone);
	} finally {
		await backbone.drain("done", drainMs);
		await backbone.close();
	}
}

/** What children inherit: nothing that configures Kvasir (they get words for that) but the hooks of tests, and nothing that colours. */
function childEnvironment(env: Context["host"]["env"]): Record<string, string | undefined> {
	const kept = Object.entries(env).filter(([name]) => !/^(KVASIR_(?!TEST_)|FORCE_COLOR$)/.test(name));
	return { ...Object.fromEntries(kept), NO_COLOR: "1" };
}
