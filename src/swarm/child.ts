import { type ChildProcess, spawn } from "node:child_process";
import { KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { type EventLog, type ProcessEvent, readEvents } from "./event-log.ts";

/** What every child of a swarm is started with. */
export interface ChildSetting {
	/** The Node binary. */
	readonly execPath: string;
	/** Words between it and the CLI's path. */
	readonly execArgs?: readonly string[];
	/** How long it may take until it listens. @default 30 s */
	readonly listeningMs?: number;
	/** The built `kvasir.js`. */
	readonly cliPath: string;
	/** A complete environment; nothing is inherited. */
	readonly env: Readonly<Record<string, string | undefined>>;
	readonly clock: Clock;
	/** Aborted: no child is waited for or kept any more. */
	readonly signal?: AbortSignal;
	/** Told how to end each child at once, for a program that ends without a word. */
	readonly onSpawn?: (kill: () => void) => void;
}

/** A kvasir command running as a process of its own. */
export interface Child {
	readonly name: string;
	readonly pid: number;
	/** Its `listening` event. */
	readonly listening: ProcessEvent;
	readonly events: EventLog;
	/** Resolves when the process is gone, with its exit code, or null where a signal ended it. */
	readonly ended: Promise<number | null>;
	/** Asks it to drain, then makes it: resolves when it is gone. */
	stop(): Promise<void>;
	/** SIGKILL: for tests of what a lost process does. */
	kill(): Promise<void>;
}

const stderrTailBytes = 8192;
const listeningMs = 30_000;
const drainMs = 10_000;

/**
 * Starts `kvasir ...args --json` and waits for its `listening` event. The child drains when its stdin ends, so it cannot
 * outlive this process, whatever ends it. Throws the child's own error where it failed, `timeout` where it said nothing.
 */
export async function startChild(name: string, args: readonly string[], setting: ChildSetting): Promise<Child> {
	const child = spawn(setting.execPath, [...(setting.execArgs ?? []), setting.cliPath, ...args, "--json"], {
		env: { ...setting.env, KVASIR_PARENT: "stdin" } as NodeJS.ProcessEnv,
		stdio: ["pipe", "pipe", "pipe"],
	});
	child.stdin.on("error", () => {});
	setting.onSpawn?.(() => child.kill("SIGKILL"));
	const end = () => child.kill("SIGKILL");
	setting.signal?.addEventListener("abort", end, { once: true });
	const stderr = keepTail(child, stderrTailBytes);
	const ended = exitOf(child);
	const events = readEvents(child.stdout, { clock: setting.clock, name, problem: stderr });
	const stop = async () => {
		child.stdin.end();
		const cancel = setting.clock.after(drainMs, () => child.kill("SIGKILL"));
		await ended;
		cancel();
	};
	try {
		if (setting.signal?.aborted) end();
		const listening = await events.waitFor((event) => event.event === "listening", setting.listeningMs ?? listeningMs);
		return {
			name,
			pid: child.pid!,
			listening,
			events,
			ended,
			stop,
			async kill() {
				child.kill("SIGKILL");
				await ended;
			},
		};
	} catch (error) {
		child.kill("SIGKILL");
		await ended;
		throw error;
	} finally {
		setting.signal?.removeEventListener("abort", end);
	}
}

function exitOf(child: ChildProcess): Promise<number | null> {
	return new Promise((resolve, reject) => {
		child.once("close", resolve);
		child.once("error", (cause) => {
			if (child.pid !== undefined) return;
			reject(new KvasirError("failed", `Cannot start ${child.spawnfile}: ${cause.message}`, { cause }));
		});
	});
}

function keepTail(child: ChildProcess, bytes: number): () => string {
	let tail = Buffer.alloc(0);
	child.stderr!.on("data", (chunk: Buffer) => {
		tail = Buffer.concat([tail, chunk]).subarray(-bytes);
	});
	return () => tail.toString("utf8").trim();
}
