import { join } from "node:path";
import { KvasirError } from "../../errors.ts";
import { describeProof } from "../../experts/describe-proof.ts";
import { deviceMemoryBytes } from "../../experts/gpu/device-options.ts";
import { addressOf, keyOf } from "../../io/base58.ts";
import { makePrivateFolder } from "../../io/files.ts";
import { lockHome } from "../../io/home-lock.ts";
import type { Model } from "../../model/model.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import { openLocalReceipts } from "../../wallet/local-receipts.ts";
import { loadNodeKey } from "../../wallet/node-key.ts";
import { rememberGateway } from "../../wallet/remembered-gateway.ts";
import { walletAddress } from "../../wallet/wallet-key.ts";
import { webSocketDialer } from "../../worker/dialer.ts";
import { parseHold } from "../../worker/held-experts.ts";
import { openWorkerHome } from "../../worker/home.ts";
import { joinTarget } from "../../worker/join-target.ts";
import { openSliceCache } from "../../worker/slice-cache.ts";
import { createSliceClient } from "../../worker/slice-client.ts";
import { startWorker, type Worker } from "../../worker/worker.ts";
import type { WorkerEvent } from "../../worker/worker-event.ts";
import type { Context } from "../program/context.ts";
import { openOutboundTo } from "../program/outbound-to.ts";
import { programVersion } from "../program/program-version.ts";
import { checkedEngineFacts, cpuName } from "./engine-facts.ts";
import { type HeldBack, holdBack } from "./hold-back.ts";
import type { JoinOptions } from "./join.ts";
import { openJoinEngine } from "./join-engine.ts";
import { localReceiptOf } from "./paid-receipts.ts";
import { readInvite } from "./read-invite.ts";

/** Work that names no wallet is not lost with it. */
const ownAddressLine = "Paid to this node's own key; to move it later: kvasir wallet claim --node --to ADDRESS";

/** Of the memory that is free: the rest is for sockets, messages and the system. */
const memoryShare = 0.7;

/** Of fetched experts on disk, to what fits in memory: what is held, and what a change brings. */
const cacheShare = 2;

/** Opens home, model and engine, and starts the worker; says that it listens once nothing of that can fail. Throws what each of them throws. */
export async function openJoin(
	context: Context,
	options: JoinOptions,
	url: string,
	onEvent: (event: WorkerEvent) => void,
): Promise<{ worker: Worker; close(): Promise<void> }> {
	const { clock, random, log, host } = context;
	const target = joinTarget(url, options.insecure);
	const home = await makePrivateFolder(context.home);
	const lock = await lockHome(home, "worker");
	const invite = options.inviteFile === undefined ? undefined : await readInvite(options.inviteFile);
	const identity = await loadNodeKey(home);
	const named = options.wallet ?? (await walletAddress(home));
	const payout = named ?? addressOf(identity.publicKey);
	const { gateway, backbone } = target;
	const outbound = await openOutboundTo(target.url, host.env, options.ca);
	const model = options.model === undefined ? null : await openNamedModel(home, options.model);
	const events = holdBack();
	const { engine, engineFacts, memoryBytes } = await openCheckedEngine(context, options, model, events);
	const receipts = await openLocalReceipts(home);
	const tell = (event: WorkerEvent) => events.say(() => onEvent(event));
	const stop = new AbortController();
	const close = async () => {
		stop.abort(new KvasirError("closed", "Cannot go on: the worker is closing"));
		await engine.close();
		await model?.weights.close();
		await receipts.close();
		await outbound.close();
		lock.release();
	};
	try {
		await rememberGateway(home, target.url);
		const cache = await openSliceCache({
			folder: join(home, "slices"),
			bytesMax: options.cache ?? cacheShare * memoryBytes,
			clock,
		});
		const fetching = { url: target.url, identity, dispatcher: outbound.dispatcher, clock, random };
		const worker = await context.progress("loading experts", async (say) =>
			startWorker({
				...{ gateway, backbone, identity, model, engine, memoryBytes, clock, random, log },
				dial: webSocketDialer({
					...{ url: target.url, identity, clock, random, invite, outbound },
					...{ model: options.swarmModel, insecure: options.insecure, fragmentBytes: options.fragment },
					onClockSkew: (offsetSeconds) => tell({ event: "clock_skew", offsetSeconds }),
				}),
				payout: keyOf(payout),
				hold: options.hold.length === 0 ? null : (dims) => options.hold.flatMap((hold) => parseHold(hold, dims)),
				slices: { cache, client: (backbone, model) => createSliceClient({ ...fetching, backbone, model }) },
				engineFacts,
				build: `kvasir ${programVersion()}`,
				home: await openWorkerHome(home, random),
				keepReceipt: (receipt) => receipts.append(localReceiptOf(receipt)),
				signal: stop.signal,
				onEvent(event) {
					if (event.event === "loading") say(`loading experts: ${event.done} of ${event.total}`);
					tell(event);
				},
				corrupt: corruption(host.env),
			}),
		);
		context.emit(
			{ event: "listening", worker: addressOf(identity.publicKey), payout, gateway: target.url },
			named === null ? ownAddressLine : undefined,
		);
		events.letGo();
		return { worker, close };
	} catch (error) {
		await close();
		throw error;
	}
}

/** An engine that has shown what it computes; tells of it, and of a device. */
async function openCheckedEngine(context: Context, options: JoinOptions, model: Model | null, events: HeldBack) {
	const { clock, log, host, emit } = context;
	const ownBytes = Math.floor(host.availableMemory() * memoryShare);
	const memoryBytes = options.memory ?? (options.gpu === undefined ? ownBytes : Math.min(deviceMemoryBytes, ownBytes));
	const engine = await openJoinEngine({ ...options, memoryBytes, device: cpuName(), clock, log }, model);
	const { proof } = engine;
	if (proof) events.say(() => emit({ event: "device", ...proof, selfCheck: undefined }, describeProof(proof)));
	const { engineFacts, event } = await checkedEngineFacts(context, engine, { threads: options.threads, memoryBytes });
	events.say(() => emit(event));
	return { engine, engineFacts, memoryBytes };
}

/** For tests of what finds a wrong worker: KVASIR_TEST_CORRUPT=LAYER:EXPERT or LAYER:all, only under NODE_ENV=test. */
function corruption(env: Context["host"]["env"]): { layer: number; expert: number | "all" } | undefined {
	const found = env.NODE_ENV === "test" ? /^(\d+):(\d+|all)$/.exec(env.KVASIR_TEST_CORRUPT ?? "") : null;
	if (found === null) return undefined;
	return { layer: Number(found[1]), expert: found[2] === "all" ? "all" : Number(found[2]) };
}
