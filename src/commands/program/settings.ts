import type { Declaration } from "./declaration.ts";
import {
	flagName,
	type OptionSpec,
	type OptionSpecs,
	type OptionValues,
	readOption,
	toggle,
	value,
} from "./options.ts";
import { oneOf, path } from "./readers.ts";

/** The options every command has. */
export const globalOptions = {
	json: toggle("--json", "print one JSON object, or one line of JSON per event"),
	quiet: toggle("--quiet", "nothing on stderr but errors"),
	logLevel: value("--log-level <level>", "error, warn, info or debug", oneOf("error", "warn", "info", "debug"), "warn"),
	home: value("--home <folder>", "where Kvasir keeps its keys, stores and settings", path),
} satisfies OptionSpecs;

export type GlobalOptions = OptionValues<typeof globalOptions>;

export interface Setting {
	readonly value: unknown;
	/** `flag`, `KVASIR_...`, `kvasir.toml` or `default`. */
	readonly origin: string;
}

/** The environment variable of an option: `KVASIR_HOME`, `KVASIR_HUB_RELAY`. */
export function environmentName(section: string | null, spec: OptionSpec<unknown>): string {
	if (spec.env) return spec.env;
	return ["KVASIR", ...(section ? [section] : []), flagName(spec)].join("_").replaceAll("-", "_").toUpperCase();
}

export interface Sources {
	/** Texts per key of the specs, as typed. */
	readonly flags: Readonly<Record<string, readonly string[] | undefined>>;
	readonly env: Readonly<Record<string, string | undefined>>;
	/** Texts per flag name, from the config file's section. */
	readonly file: Readonly<Record<string, readonly string[] | undefined>>;
}

/** Resolves each option: flag, then environment, then config file, then default. Throws `usage` for a text that its reader refuses. */
export function resolveSettings(section: string | null, specs: OptionSpecs, sources: Sources): Record<string, Setting> {
	const settings: Record<string, Setting> = {};
	for (const [key, spec] of Object.entries(specs)) {
		const name = environmentName(section, spec);
		const fromEnvironment = sources.env[name];
		const candidates: [readonly string[] | undefined, string, string][] = [
			[sources.flags[key], "flag", `--${flagName(spec)}`],
			[fromEnvironment === undefined ? undefined : splitList(spec, fromEnvironment), name, name],
			[sources.file[flagName(spec)], "kvasir.toml", `${flagName(spec)} in kvasir.toml`],
		];
		const found = candidates.find(([texts]) => texts !== undefined);
		settings[key] = found
			? { value: readOption(spec, found[0]!, found[2]), origin: found[1] }
			: { value: spec.fallback, origin: "default" };
	}
	return settings;
}

/** The values alone, typed by their declaration. */
export function valuesOf<O extends OptionSpecs>(settings: Record<string, Setting>): OptionValues<O> {
	return Object.fromEntries(Object.entries(settings).map(([key, { value }]) => [key, value])) as OptionValues<O>;
}

/** The options of a command with its section. */
export function settingsOf(command: Declaration, sources: Sources): Record<string, Setting> {
	return resolveSettings(command.section, command.options, sources);
}

function splitList(spec: OptionSpec<unknown>, text: string): string[] {
	return spec.kind === "list" ? text.split(/\s+/).filter(Boolean) : [text];
}
