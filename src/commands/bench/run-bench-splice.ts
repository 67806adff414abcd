import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { startEchoBackbone } from "../../bench/echo-backbone.ts";
import { type IdleLinks, measureIdleLinks } from "../../bench/idle-links.ts";
import { startNginx } from "../../bench/nginx.ts";
import { benchSplice, type SpliceMeasurement } from "../../bench/splice.ts";
import { addressOf } from "../../io/base58.ts";
import type { KeyPair } from "../../io/crypto.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import type { Swarm } from "../../swarm/swarm.ts";
import { loadNodeKey } from "../../wallet/node-key.ts";
import { startOwnSwarm, withBackbone } from "../own-swarm.ts";
import type { Context } from "../program/context.ts";
import { dialAt } from "../program/listen-at.ts";
import { hostPort } from "../program/readers.ts";
import { withTemporaryFolder } from "../program/temporary-folder.ts";

export interface SpliceBench {
	/** Gateway and hub first; then nginx, where there is one. */
	readonly traffic: readonly SpliceMeasurement[];
	/** Gateway and hub against nginx; null without nginx. */
	readonly ratio: number | null;
	/** Null where none were asked for. */
	readonly idle: IdleLinks | null;
}

export interface SpliceBenchChoice {
	/** 1e9 bytes of payload over each path; 0: none. */
	readonly gigabytes: number;
	/** Idle worker links; 0: none. */
	readonly links: number;
	readonly watchSeconds: number;
}

/** Measures gateway and hub, as processes of this very program, and nginx where this machine has it. */
export function runBenchSplice(context: Context, choice: SpliceBenchChoice): Promise<SpliceBench> {
	return withTemporaryFolder(context.host, async (folder) => {
		const identity = await loadNodeKey(folder);
		const rate = String(Math.max(1_000, choice.links));
		const swarm = await startOwnSwarm(context, {
			home: folder,
			model: "tiny",
			backbones: [addressOf(identity.publicKey)],
			workers: [],
			gatewayArgs: ["--admit-rate", rate],
		});
		try {
			const measuring = async (): Promise<SpliceBench> => {
				// Idle links first: memory is counted from processes that have carried nothing yet.
				const idle = choice.links === 0 ? null : await idleOf(context, swarm, { identity, ...choice });
				const traffic = choice.gigabytes === 0 ? [] : await trafficOf(context, swarm, { folder, identity, ...choice });
				const [splice, nginx] = traffic;
				const ratio = nginx === undefined ? null : splice!.cpuSecondsPerGb / nginx.cpuSecondsPerGb;
				return { traffic, ratio, idle };
			};
			return await Promise.race([measuring(), swarm.failure]);
		} finally {
			await swarm.stop();
		}
	});
}

async function trafficOf(
	context: Context,
	swarm: Swarm,
	{ folder, identity, gigabytes }: SpliceBenchChoice & { readonly folder: string; readonly identity: KeyPair },
): Promise<SpliceMeasurement[]> {
	const { clock, random, signal, host } = context;
	const hub = dialAt(hostPort.read(swarm.hubRelay)!);
	const backbone = await startEchoBackbone({ hub, identity, model: "tiny", clock, random });
	const nginxFolder = join(folder, "nginx");
	await mkdir(nginxFolder);
	try {
		const nginx = await startNginx({
			folder: nginxFolder,
			backendPort: backbone.port,
			path: host.env.PATH,
			clock,
			onSpawn: (kill) => host.onExit(kill),
		});
		const paths = [
			{
				name: "gateway and hub",
				url: swarm.gatewayUrl.replace("http:", "ws:"),
				pids: [swarm.gateway.pid, swarm.hub.pid],
			},
			...(nginx === null ? [] : [{ name: "nginx", url: `ws://127.0.0.1:${nginx.port}`, pids: [nginx.pid] }]),
		];
		try {
			return await benchSplice({ paths, bytes: gigabytes * 1e9, clock, random, signal });
		} finally {
			await nginx?.stop();
		}
	} finally {
		await backbone.close();
	}
}

async function idleOf(
	context: Context,
	swarm: Swarm,
	{ identity, links, watchSeconds }: SpliceBenchChoice & { readonly identity: KeyPair },
): Promise<IdleLinks> {
	const { clock, random, signal, home } = context;
	const model = await openNamedModel(home, "tiny");
	await model.weights.close();
	const hub = hostPort.read(swarm.hubRelay)!;
	return withBackbone(context, { model, hub, identity, layers: [], waitMs: 0, wholeRows: true }, (backbone) =>
		measureIdleLinks({
			url: swarm.gatewayUrl.replace("http:", "ws:"),
			links,
			watchMs: watchSeconds * 1000,
			carriers: [
				{ name: "gateway", pid: swarm.gateway.pid },
				{ name: "hub", pid: swarm.hub.pid },
			],
			arrived: () => backbone.snapshot().workers.length,
			clock,
			random,
			signal,
		}),
	);
}
