import type { Writable } from "node:stream";
import type { Host } from "./host.ts";

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
