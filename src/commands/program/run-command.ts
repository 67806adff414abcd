import { resolve } from "node:path";
import { homeFolder } from "../../io/home.ts";
import type { CommandSpec } from "./command.ts";
import { readConfigFile } from "./config-file.ts";
import type { Declaration } from "./declaration.ts";
import type { Host } from "./host.ts";
import { makeContext } from "./make-context.ts";
import { printError, printJson, toJson } from "./output.ts";
import { type GlobalOptions, globalOptions, resolveSettings, type Setting, settingsOf, valuesOf } from "./settings.ts";

export interface CommandLine {
	/** Texts per option key, global ones among them. */
	readonly flags: Readonly<Record<string, readonly string[] | undefined>>;
	readonly operands: readonly (string | undefined)[];
	readonly host: Host;
	/** Every command's declaration, for the config file. */
	declarations(): Promise<readonly Declaration[]>;
}

/** Resolves the settings, runs a command, prints what it returned; returns the exit code. */
export async function runCommand(spec: CommandSpec, line: CommandLine): Promise<number> {
	const { host, flags } = line;
	const early = resolveSettings(null, globalOptions, { flags, env: host.env, file: {} });
	const home = resolve(String(early.home!.value ?? homeFolder(host)));
	const file = await readConfigFile(home, line.declarations);
	const global = resolveGlobal(flags, host, file[""] ?? {}, home);
	const { context, close } = await makeContext({ host, global, home, declarations: line.declarations });
	let exitCode = 0;
	try {
		const settings = settingsOf(spec, { flags, env: host.env, file: file[spec.section] ?? {} });
		const outcome = await spec.run(context, valuesOf(settings), line.operands);
		exitCode = outcome.exitCode ?? 0;
		if (outcome.data !== undefined) {
			if (global.json) printJson(host, { ok: true, data: outcome.data });
			else host.stdout.write(`${(spec.render ?? toJson)(outcome.data, context)}\n`);
		}
	} catch (error) {
		// What breaks because it was told to stop is no failure of its own.
		if (!context.signal.aborted)
			exitCode = printError(host, error, { json: global.json, stack: global.logLevel === "debug" });
	}
	return (await close()) ?? exitCode;
}

function resolveGlobal(
	flags: CommandLine["flags"],
	host: Host,
	file: Readonly<Record<string, readonly string[]>>,
	home: string,
): GlobalOptions {
	const settings: Record<string, Setting> = resolveSettings(null, globalOptions, { flags, env: host.env, file });
	return { ...valuesOf<typeof globalOptions>(settings), home };
}
