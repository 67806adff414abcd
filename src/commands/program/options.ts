import { KvasirError } from "../../errors.ts";

/** Reads one text from a flag, the environment or the config file; undefined refuses it, and `expected` says what would have done. */
export interface Reader<T> {
	readonly expected: string;
	read(text: string): T | undefined;
}

/** One option of a command as data: commander, `config show`, completion and the config file's schema are all made from it. */
export interface OptionSpec<T> {
	/** Such as `--listen <host:port>`. */
	readonly flags: string;
	readonly about: string;
	readonly kind: "value" | "list" | "switch";
	readonly reader: Reader<unknown>;
	readonly fallback: T;
	/** Where the rule `KVASIR_<SECTION>_<FLAG>` does not hold. */
	readonly env?: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec<unknown>>>;
export type OptionValues<O extends OptionSpecs> = {
	readonly [K in keyof O]: O[K] extends OptionSpec<infer T> ? T : never;
};

/** An option with one value; undefined where it is absent and has no default. */
export function value<T>(flags: string, about: string, reader: Reader<T>): OptionSpec<T | undefined>;
export function value<T>(flags: string, about: string, reader: Reader<T>, fallback: T): OptionSpec<T>;
export function value<T>(flags: string, about: string, reader: Reader<T>, fallback?: T): OptionSpec<T | undefined> {
	return { flags, about, kind: "value", reader, fallback };
}

/** An option whose environment variable has a name of its own. */
export function named<T>(env: string, spec: OptionSpec<T>): OptionSpec<T> {
	return { ...spec, env };
}

/** An option that may be repeated; an empty array where it is absent. */
export function list<T>(flags: string, about: string, reader: Reader<T>): OptionSpec<readonly T[]> {
	return { flags, about, kind: "list", reader, fallback: [] };
}

const booleans: Reader<boolean> = {
	expected: "true or false",
	read: (text) => (/^(true|1|)$/i.test(text) ? true : /^(false|0)$/i.test(text) ? false : undefined),
};

/** A flag without a value. */
export function toggle(flags: string, about: string): OptionSpec<boolean> {
	return { flags, about, kind: "switch", reader: booleans, fallback: false };
}

/** The long name without dashes: `--top-k <n>` is `top-k`. */
export function flagName(spec: OptionSpec<unknown>): string {
	return /--([a-z0-9-]+)/.exec(spec.flags)![1]!;
}

/** Reads the texts of an option; throws `usage` naming where the text came from. */
export function readOption(spec: OptionSpec<unknown>, texts: readonly string[], origin: string): unknown {
	const values = texts.map((text) => {
		const result = spec.reader.read(text);
		if (result !== undefined) return result;
		throw new KvasirError("usage", `Cannot read ${origin}: "${text}" is not ${spec.reader.expected}`, {
			hint: `--${flagName(spec)}: ${spec.about}`,
		});
	});
	return spec.kind === "list" ? values : values.at(-1);
}
