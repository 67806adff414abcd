import type { Readable, Writable } from "node:stream";

/** The process as commands see it; a test hands in another one. */
export interface Host {
	readonly argv: readonly string[];
	readonly env: Readonly<Record<string, string | undefined>>;
	readonly stdin: Readable & { isTTY?: boolean; setRawMode?(on: boolean): unknown };
	readonly stdout: Writable & { isTTY?: boolean; columns?: number };
	readonly stderr: Writable & { isTTY?: boolean };
	readonly platform: string;
	readonly userHome: string;
	/** The Node binary, and its version. */
	readonly execPath: string;
	readonly nodeVersion: string;
	/** Bytes this process may still take, a container's limit respected. */
	availableMemory(): number;
	/** Milliseconds of CPU time used so far, by all threads. */
	cpuMs(): number;
	onSignal(name: "SIGINT" | "SIGTERM" | "SIGHUP", fn: () => void): () => void;
	/** Calls `fn`, which may not wait for anything, when the process ends; the last one given is called first. */
	onExit(fn: () => void): () => void;
	/** Ends the process at once. */
	exit(code: number): void;
}

/** Runs the command line of this process and ends it with the command's exit code. */
export async function runOnThisProcess(): Promise<void> {
	const { homedir } = await import("node:os");
	const host: Host = {
		argv: process.argv.slice(2),
		env: process.env,
		stdin: process.stdin,
		stdout: process.stdout,
		stderr: process.stderr,
		platform: process.platform,
		userHome: homedir(),
		execPath: process.execPath,
		nodeVersion: process.version,
		availableMemory: () => process.availableMemory(),
		cpuMs() {
			const { user, system } = process.cpuUsage();
			return (user + system) / 1000;
		},
		onSignal(name, fn) {
			process.on(name, fn);
			return () => process.off(name, fn);
		},
		onExit(fn) {
			process.prependListener("exit", fn);
			return () => process.off("exit", fn);
		},
		exit: (code) => process.exit(code),
	};
	// A reader that went away (`| head`) ends nothing but the printing; a full disk is said, as the data is lost.
	const lost: Error[] = [];
	process.stderr.on("error", () => {});
	process.stdout.on("error", (error: NodeJS.ErrnoException) => {
		if (error.code !== "EPIPE") lost.push(error);
	});
	const { usesColour } = await import("./output.ts");
	// The libraries that colour know this variable alone; they read it when they are loaded.
	if (!usesColour(host.env, host.stdout)) process.env.FORCE_COLOR = "0";
	const { runProgram, reportFailure } = await import("./program.ts");
	process.on("uncaughtException", (error) => process.exit(reportFailure(host, error)));
	process.on("unhandledRejection", (error) => process.exit(reportFailure(host, error)));
	const code = await runProgram(host);
	for (const stream of [process.stdout, process.stderr]) await flushed(stream);
	if (lost.length === 0 || code !== 0) process.exit(code);
	process.exit(reportFailure({ ...host, argv: [] }, lost[0]));
}

function flushed(stream: Writable): Promise<void> {
	if (stream.destroyed || !stream.writable) return Promise.resolve();
	return new Promise((resolve) => {
		stream.once("close", resolve);
		stream.write("", () => resolve());
	});
}
