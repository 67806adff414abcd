import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { builtUrl } from "../../src/io/built.ts";

/** The built command line, as a user's shell would start it. */
export const cliPath = fileURLToPath(builtUrl(new URL("../../bin/kvasir.ts", import.meta.url).href, "./kvasir.js"));

export interface CliResult {
	/** null where a signal ended it. */
	readonly code: number | null;
	readonly stdout: string;
	readonly stderr: string;
	/** The one JSON object on stdout. */
	json(): Envelope;
	/** Every line of JSON on stdout. */
	lines(): Record<string, unknown>[];
}

export interface Envelope {
	readonly ok: boolean;
	// biome-ignore lint/suspicious/noExplicitAny: tests read what a command printed, whatever its shape
	readonly data?: any;
	readonly error?: { readonly code: string; readonly message: string; readonly hint: string | null };
}

export interface CliOptions {
	readonly env?: Readonly<Record<string, string>>;
	readonly input?: string;
	readonly cwd?: string;
	readonly deadlineMs?: number;
}

/** The environment of the tests without anything that would colour or configure a child. */
export function cleanEnv(env: Readonly<Record<string, string>> = {}): Record<string, string | undefined> {
	const inherited = Object.entries(process.env).filter(
		([name]) => !/^(KVASIR_|NO_COLOR|FORCE_COLOR|CI$|VITEST|NODE_ENV)/.test(name),
	);
	return { ...Object.fromEntries(inherited), ...env };
}

/** Starts the command line; it is killed when the test is over, if it still runs. */
export function startCli(args: readonly string[], options: CliOptions = {}): ChildProcessWithoutNullStreams {
	const child = spawn(process.execPath, [cliPath, ...args], {
		env: cleanEnv(options.env) as NodeJS.ProcessEnv,
		...(options.cwd ? { cwd: options.cwd } : {}),
	});
	child.stdin.on("error", () => {});
	onTestFinished(() => void child.kill("SIGKILL"));
	return child;
}

/** Runs the command line to its end. */
export function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
	const child = startCli(args, options);
	child.stdin.end(options.input ?? "");
	return resultOf(child, args, options.deadlineMs ?? 30_000);
}

/** Waits for a started command to end. */
export function resultOf(
	child: ChildProcessWithoutNullStreams,
	args: readonly string[],
	deadlineMs: number,
): Promise<CliResult> {
	let stdout = "";
	let stderr = "";
	child.stdout.setEncoding("utf8").on("data", (text) => {
		stdout += text;
	});
	child.stderr.setEncoding("utf8").on("data", (text) => {
		stderr += text;
	});
	return new Promise((resolve, reject) => {
		const timer = setTimeout(() => {
			child.kill("SIGKILL");
			reject(new Error(`kvasir ${args.join(" ")} ran past ${deadlineMs} ms\n${stdout}\n${stderr}`));
		}, deadlineMs);
		child.once("error", reject);
		child.once("close", (code) => {
			clearTimeout(timer);
			const lines = () =>
				stdout
					.split("\n")
					.filter(Boolean)
					.map((line) => JSON.parse(line));
			resolve({ code, stdout, stderr, lines, json: () => JSON.parse(stdout) });
		});
	});
}
