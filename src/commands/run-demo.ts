import { join } from "node:path";
import { openDecodeThread } from "../backbone/decode/decode-client.ts";
import type { GenerationResult } from "../backbone/decode/generation.ts";
import { KvasirError } from "../errors.ts";
import type { EngineName } from "../experts/open-engine.ts";
import { addressOf } from "../io/base58.ts";
import { servedBytesOf } from "../ledger/units.ts";
import { openNamedModel } from "../model/resolve-model.ts";
import { tokenizerOf } from "../model/tokenizer.ts";
import { splitExperts } from "../swarm/expert-split.ts";
import type { Swarm } from "../swarm/swarm.ts";
import type { Verdict } from "../verify/report.ts";
import { kvrText, unitsText } from "../wallet/amounts.ts";
import { type GatewayClient, gatewayClient } from "../wallet/gateway-client.ts";
import { loadNodeKey } from "../wallet/node-key.ts";
import type { PromptRun } from "./backbone/decode-prompts.ts";
import { startOwnSwarm } from "./own-swarm.ts";
import type { Context } from "./program/context.ts";
import { withTemporaryFolder } from "./program/temporary-folder.ts";

export interface DemoOptions {
	readonly engine: EngineName;
	readonly prompt: string;
	readonly tokens: number;
}

/** What `kvasir demo` prints (cli.md). */
export interface DemoReport {
	readonly text: string;
	readonly tokens: { readonly same: number; readonly total: number };
	readonly logits: { readonly identical: boolean };
	readonly remote: { readonly asked: number; readonly answered: number; readonly fallback: number };
	readonly verdict: Verdict;
	readonly workers: readonly DemoWorker[];
	readonly processes: number;
	readonly seconds: number;
}

export interface DemoWorker {
	readonly address: string;
	readonly pairs: number;
	readonly servedBytes: number;
	readonly units: string;
	readonly pendingKvr: string;
	readonly nano: string;
}

const workerCount = 2;
const model = "tiny";
const decodeMs = 60_000;
const creditMs = 20_000;
const lookMs = 50;

/** Decodes a prompt through a swarm of five processes and again locally; waits until the work stands in the wallets. */
export function runDemo(context: Context, options: DemoOptions, say: (label: string) => void): Promise<DemoReport> {
	const startMs = context.clock.monotonic();
	return withTemporaryFolder(context.host, async (folder) => {
		const opened = await openNamedModel(folder, model);
		await opened.weights.close();
		const { shape } = opened;
		const tokenizer = tokenizerOf(opened.metadata);
		const backboneHome = join(folder, "backbone");
		const swarm = await startOwnSwarm(context, {
			home: folder,
			model,
			backbones: [addressOf((await loadNodeKey(backboneHome)).publicKey)],
			workers: splitExperts(shape.experts, workerCount).map((hold) => ({
				hold: [hold],
				args: ["--engine", options.engine],
			})),
		});
		try {
			say("decoding through the swarm and locally");
			const prompt = tokenizer.encode(options.prompt, { special: true });
			const local = decodeLocally(folder, options, prompt, [...tokenizer.endOfGeneration], context.signal);
			// A local run that fails is reported below, not as an unhandled rejection.
			local.catch(() => {});
			const remote = await Promise.race([decodeRemotely(swarm, backboneHome, options), swarm.failure]);
			say("waiting for the credits");
			const workers = await Promise.race([creditedWorkers(context, swarm, remote, shape.hidden), swarm.failure]);
			return reportOf(remote, await local, workers, (context.clock.monotonic() - startMs) / 1000);
		} finally {
			await swarm.stop();
		}
	});
}

async function decodeRemotely(swarm: Swarm, home: string, { engine, prompt, tokens }: DemoOptions): Promise<PromptRun> {
	const asks = ["--prompt", prompt, "--tokens", String(tokens), "--engine", engine, "--prefill", "remote"];
	const backbone = await swarm.startBackbone(home, ["--model", model, "--wait", "30", ...asks]);
	const done = await backbone.events.waitFor(({ event }) => event === "done", decodeMs);
	await backbone.ended;
	return done as unknown as PromptRun;
}

async function decodeLocally(
	home: string,
	{ engine, tokens }: DemoOptions,
	prompt: readonly number[],
	stopTokens: readonly number[],
	signal: AbortSignal,
): Promise<GenerationResult> {
	const decode = await openDecodeThread({ home, model, engine });
	try {
		const sampling = { temperature: 0 };
		return await decode.generate({ prompt, maxTokens: tokens, sampling, stopTokens, logits: "digest" }, { signal });
	} finally {
		await decode.close();
	}
}

/** Waits until the gateway shows each worker's wallet what the backbone says that it served. Throws `timeout`. */
async function creditedWorkers(
	{ clock, random, signal }: Context,
	swarm: Swarm,
	{ workers }: PromptRun,
	hidden: number,
): Promise<DemoWorker[]> {
	const client = gatewayClient({ gateway: swarm.gatewayUrl, clock, random });
	const giveUpMs = clock.monotonic() + creditMs;
	return Promise.all(
		swarm.workers.map(async ({ listening }) => {
			const address = String(listening.payout);
			const pairs = workers.find(({ key }) => key === listening.worker)?.pairs ?? 0;
			const balance = await untilCredited(client, address, servedBytesOf(BigInt(pairs), hidden));
			return {
				address,
				pairs,
				servedBytes: Number(balance.servedBytes),
				units: unitsText(balance.servedBytes),
				pendingKvr: kvrText(balance.pending),
				nano: String(balance.pending),
			};
		}),
	);

	async function untilCredited(from: GatewayClient, address: string, bytes: bigint) {
		for (;;) {
			const balance = await from.balance(address, signal);
			if (balance.servedBytes >= bytes) return balance;
			if (clock.monotonic() > giveUpMs) {
				throw new KvasirError(
					"timeout",
					`Cannot see the pay of ${address}: ${balance.servedBytes} of ${bytes} bytes credited`,
				);
			}
			await clock.sleep(lookMs, signal);
		}
	}
}

function reportOf(run: PromptRun, local: GenerationResult, workers: DemoWorker[], seconds: number): DemoReport {
	const { asked, answered, fallback } = run.remote!;
	const { text, tokens, logitsSha256 } = run.answers[0]!;
	const same = tokens.filter((token, index) => token === local.tokens[index]).length;
	const total = Math.max(tokens.length, local.tokens.length);
	const identical = logitsSha256 === Buffer.from(local.logitsSha256!).toString("hex");
	const complete = answered === asked && fallback === 0 && asked > 0;
	return {
		text,
		tokens: { same, total },
		logits: { identical },
		remote: { asked, answered, fallback },
		verdict: same < total || !identical ? "different" : complete ? "identical" : "incomplete",
		workers,
		// Hub, gateway, backbone and workers.
		processes: 3 + workers.length,
		seconds: Math.round(seconds * 100) / 100,
	};
}
