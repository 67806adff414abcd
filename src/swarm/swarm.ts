import { join } from "node:path";
import { makePrivateFolder } from "../io/files.ts";
import { type Child, type ChildSetting, startChild } from "./child.ts";

/** A worker process: which experts it serves, with what. */
export interface WorkerPlan {
	/** `LAYERS:FIRST-LAST`, as `join --hold` takes it. */
	readonly hold: readonly string[];
	/** False: it has no model file and fetches what it is told to hold. @default true */
	readonly ownModel?: boolean;
	/** Further words for `join`, such as `["--engine", "canonical"]`. */
	readonly args?: readonly string[];
	readonly env?: Readonly<Record<string, string>>;
	/** What runs it instead of `execPath`: a program and its first words. */
	readonly command?: readonly string[];
}

export interface SwarmPlan extends ChildSetting {
	/** A folder that is the swarm's alone; each process gets its home in it. */
	readonly home: string;
	/** What `--model` of the workers says: `tiny` or a path. */
	readonly model: string;
	/** Base58 keys of the backbones that may park at the hub. */
	readonly backbones: readonly string[];
	readonly workers: readonly WorkerPlan[];
	/** A relay on loopback that workers dial in the gateway's place: its port, and who tells it where the gateway is. */
	readonly workersVia?: { readonly port: number; readonly leadTo: (gatewayPort: number) => void };
	/** Further words for `serve-gateway`. */
	readonly gatewayArgs?: readonly string[];
}

/** Gateway, hub and workers as processes on loopback. */
export interface Swarm {
	readonly hub: Child;
	readonly gateway: Child;
	readonly workers: readonly Child[];
	/** `127.0.0.1:port` where backbones park. */
	readonly hubRelay: string;
	/** `127.0.0.1:port` of the hub's ledger and admin API. */
	readonly hubApi: string;
	/** `http://127.0.0.1:port` of the gateway. */
	readonly gatewayUrl: string;
	/** Starts one more worker and waits until it dials. */
	addWorker(plan: WorkerPlan): Promise<Child>;
	/** Starts a backbone of this swarm; its home must hold the node key of one of `backbones`. */
	startBackbone(home: string, args: readonly string[]): Promise<Child>;
	/** Rejects when a process ends by itself, with what it said, and when `signal` is aborted: whoever waits for the swarm races against it. */
	readonly failure: Promise<never>;
	/** Workers first, then backbones, gateway and hub; no process is left. Safe to call twice. */
	stop(): Promise<void>;
}

/** A worker takes minutes to start under a program that emulates another processor, or with a graphics driver that compiles on the CPU. */
const workerListeningMs = 240_000;

/** Between the end of a process and the last of what it printed. */
const saidMs = 1_000;

/** Starts hub, gateway and workers, each on a free port. What was started is stopped again where one of them fails. */
export async function startSwarm(plan: SwarmPlan): Promise<Swarm> {
	const started: Child[] = [];
	const start = async (
		name: string,
		home: string,
		args: readonly string[],
		{ env, command }: Pick<WorkerPlan, "env" | "command"> = {},
		patience: Pick<ChildSetting, "listeningMs"> = {},
	) => {
		await makePrivateFolder(home);
		const [execPath = plan.execPath, ...execArgs] = command ?? [];
		const setting = { ...plan, execPath, execArgs, ...patience, env: { ...plan.env, ...env } };
		const child = await startChild(name, [...args, "--home", home], setting);
		started.push(child);
		child.ended.then((code) => {
			if (code !== 0 && stopping === null) child.events.waitFor(() => false, saidMs).catch(fail);
		});
		return child;
	};
	let stopping: Promise<void> | null = null;
	let fail: (error: unknown) => void = () => {};
	const failure = new Promise<never>((_, reject) => {
		fail = reject;
	});
	failure.catch(() => {});
	plan.signal?.addEventListener("abort", () => fail(plan.signal!.reason), { once: true });
	const stop = () => {
		stopping ??= stopAll(started);
		return stopping;
	};
	try {
		const secret = join(plan.home, "hub-secret");
		const hub = await start("hub", join(plan.home, "hub"), [
			"serve-hub",
			...["--relay", "127.0.0.1:0", "--api", "127.0.0.1:0", "--secret-file", secret],
			...plan.backbones.flatMap((key) => ["--backbone-key", key]),
		]);
		const hubRelay = `127.0.0.1:${hub.listening.relayPort}`;
		const hubApi = `127.0.0.1:${hub.listening.apiPort}`;
		const gateway = await start("gateway", join(plan.home, "gateway"), [
			"serve-gateway",
			...["--listen", "127.0.0.1:0", "--plain", "--admin", "127.0.0.1:0"],
			...["--hub", hubRelay, "--hub-api", hubApi, "--hub-secret-file", secret],
			...(plan.workersVia === undefined ? [] : ["--public-host", `127.0.0.1:${plan.workersVia.port}`]),
			...(plan.gatewayArgs ?? []),
		]);
		const gatewayUrl = `http://127.0.0.1:${gateway.listening.port}`;
		plan.workersVia?.leadTo(Number(gateway.listening.port));
		const joinUrl = `ws://127.0.0.1:${plan.workersVia?.port ?? gateway.listening.port}`;
		const workers: Child[] = [];
		let named = 0;
		const addWorker = async (worker: WorkerPlan) => {
			const name = `worker-${++named}`;
			const model = worker.ownModel === false ? [] : ["--model", plan.model];
			const args = ["join", joinUrl, ...model];
			const holds = worker.hold.flatMap((hold) => ["--hold", hold]);
			const words = [...args, ...holds, ...(worker.args ?? [])];
			const child = await start(name, join(plan.home, name), words, worker, { listeningMs: workerListeningMs });
			workers.push(child);
			return child;
		};
		await Promise.all(plan.workers.map(addWorker));
		const startBackbone = (home: string, args: readonly string[]) =>
			start("backbone", home, ["backbone", "dispatch", "--hub", hubRelay, ...args]);
		return { hub, gateway, workers, hubRelay, hubApi, gatewayUrl, addWorker, startBackbone, failure, stop };
	} catch (error) {
		await stop();
		throw error;
	}
}

async function stopAll(started: readonly Child[]): Promise<void> {
	// Whoever dials goes first, so that nobody redials a closed port and receipts are exchanged while the hub still listens.
	const order = ["worker", "backbone", "gateway", "hub"];
	for (const role of order) {
		await Promise.all(started.filter((child) => child.name.startsWith(role)).map((child) => child.stop()));
	}
}
