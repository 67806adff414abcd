import { join } from "node:path";
import { KvasirError } from "../../errors.ts";
import { readSmallFile } from "../../io/files.ts";
import { nearestName } from "../../io/nearest-name.ts";
import type { Declaration } from "./declaration.ts";
import { flagName, type OptionSpecs } from "./options.ts";
import { globalOptions } from "./settings.ts";

const configBytesMax = 1 << 20;

/** Texts per section and flag name; the section "" holds the options every command has. */
export type ConfigFile = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/**
 * Reads `kvasir.toml` of a home. Nothing there is an empty file. Throws `config` for what is no TOML and for a key or
 * section no command has, naming the nearest one.
 *
 * @param commands loads every command's declaration; asked for only when there is a file
 */
export async function readConfigFile(
	home: string,
	commands: () => Promise<readonly Declaration[]>,
): Promise<ConfigFile> {
	const path = join(home, "kvasir.toml");
	const bytes = await readSmallFile(path, configBytesMax).catch((cause: KvasirError) => {
		throw new KvasirError("config", cause.message, { cause });
	});
	const source = bytes?.toString("utf8") ?? null;
	return source === null ? {} : parseConfig(source, path, await commands());
}

/** Checks the text of a config file against the declarations. Throws `config`. */
export async function parseConfig(source: string, path: string, commands: readonly Declaration[]): Promise<ConfigFile> {
	const [{ parse }, { z }] = await Promise.all([import("smol-toml"), import("zod")]);
	let document: unknown;
	try {
		document = parse(source);
	} catch (cause) {
		throw new KvasirError("config", `Cannot read ${path}: ${(cause as Error).message.split("\n")[0]}`, { cause });
	}
	const scalar = z.union([z.string(), z.number(), z.boolean(), z.bigint()]).transform(String);
	const texts = z.union([scalar.transform((text) => [text]), z.array(scalar)]);
	const keys = (specs: OptionSpecs) =>
		Object.fromEntries(Object.values(specs).map((spec) => [flagName(spec), texts.optional()]));
	const sections = new Map<string, OptionSpecs>();
	for (const command of commands) {
		sections.set(command.section, { ...sections.get(command.section), ...command.options });
	}
	const known = new Map([...sections].map(([name, specs]) => [name, keys(specs)]));
	// The home is where this file is found, so it cannot be named in it.
	const { home: _, ...top } = keys(globalOptions);
	const schema = z.strictObject({
		...top,
		...Object.fromEntries([...known].map(([name, shape]) => [name, z.strictObject(shape).optional()])),
	});
	const checked = schema.safeParse(document);
	if (!checked.success) throw configError(path, checked.error.issues[0]!, known, Object.keys(top));
	return toSections(checked.data);
}

function toSections(data: Record<string, unknown>): ConfigFile {
	const file: Record<string, Record<string, string[]>> = { "": {} };
	for (const [key, value] of Object.entries(data)) {
		if (Array.isArray(value)) file[""]![key] = value as string[];
		else if (value !== undefined) file[key] = value as Record<string, string[]>;
	}
	return file;
}

interface Issue {
	readonly code: string;
	readonly message: string;
	readonly path: readonly PropertyKey[];
	readonly keys?: readonly string[];
}

function configError(path: string, issue: object, known: Map<string, object>, top: readonly string[]): KvasirError {
	const { code, keys, message, path: where } = issue as Issue;
	const place = where.length > 0 ? ` in [${where.join(".")}]` : "";
	if (code !== "unrecognized_keys" || !keys) {
		return new KvasirError("config", `Cannot use ${path}: ${message}${place}`);
	}
	const names = where.length > 0 ? Object.keys(known.get(String(where[0])) ?? {}) : [...known.keys(), ...top];
	const near = nearestName(keys[0]!, names);
	return new KvasirError("config", `Cannot use ${path}: unknown key "${keys[0]}"${place}`, {
		hint: near ? `Did you mean "${near}"?` : `Known keys: ${names.join(", ")}`,
	});
}
