import { KvasirError } from "../errors.ts";

/** GGUF metadata: numbers, strings, booleans, and arrays of these. */
export type Metadata = ReadonlyMap<string, unknown>;

/** Metadata keys of the architecture start with this. */
export const architecture = "qwen35moe";

/** An integer between `least` and `most`. Throws `unsupported_shape` naming the key. */
export function integerOf(metadata: Metadata, key: string, least: number, most: number): number {
	const value = metadata.get(key);
	if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
	throw unexpected(key, `a whole number from ${least} to ${most}`, value);
}

/** A finite number above zero. Throws `unsupported_shape` naming the key. */
export function positiveOf(metadata: Metadata, key: string): number {
	const value = metadata.get(key);
	if (typeof value === "number" && Number.isFinite(value) && value > 0) return value;
	throw unexpected(key, "a number above zero", value);
}

/** A text, or undefined where the key is absent. Throws `bad_gguf` for any other type. */
export function textOf(metadata: Metadata, key: string): string | undefined {
	const value = metadata.get(key);
	if (value === undefined || typeof value === "string") return value;
	throw new KvasirError("bad_gguf", `Cannot use the model: "${key}" must be a text, found ${describe(value)}`);
}

/** The error for a metadata value that no model of this architecture can have. */
export function unexpected(key: string, wanted: string, found: unknown): KvasirError {
	return new KvasirError(
		"unsupported_shape",
		`Cannot use the model: "${key}" must be ${wanted}, found ${describe(found)}`,
		{
			facts: { key },
		},
	);
}

function describe(value: unknown): string {
	if (value === undefined) return "nothing";
	if (Array.isArray(value)) return `an array of ${value.length}`;
	return typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : String(value);
}
