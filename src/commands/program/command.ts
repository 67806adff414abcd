import type { Context } from "./context.ts";
import type { Declaration } from "./declaration.ts";
import type { OptionSpecs, OptionValues } from "./options.ts";

/** What a command that ended says: one value, printed as JSON or as text, and the exit code where it is not 0. */
export interface Outcome<T> {
	/** Absent for a long-running command, which has said everything in events. */
	readonly data?: T;
	readonly exitCode?: number;
}

/** A command as data: its declaration, one call, and how its value reads as text. */
export interface CommandSpec<O extends OptionSpecs = OptionSpecs, T = unknown> extends Declaration<O> {
	run(context: Context, options: OptionValues<O>, operands: readonly (string | undefined)[]): Promise<Outcome<T>>;
	/** The value as text for people; without it the JSON is printed. */
	render?(data: T, context: Context): string;
}

/** Keeps the types of a declaration while it is stored among others. */
export function defineCommand<O extends OptionSpecs, T>(spec: CommandSpec<O, T>): CommandSpec {
	return spec as unknown as CommandSpec;
}
