import { KvasirError } from "../../errors.ts";
import { systemError } from "../../io/system-error.ts";
import { defaultHints } from "./default-hints.ts";
import type { Host } from "./host.ts";

/** What to try next. */
function hintOf({ code, hint }: KvasirError): string {
	return hint ?? defaultHints[code];
}

/** The error of the envelope. Anything that is no KvasirError is a bug of ours: `internal`. */
function errorEnvelope(error: KvasirError): object {
	return { ok: false, error: { code: error.code, message: error.message, hint: hintOf(error) } };
}

/** Whatever was thrown, as a KvasirError: what the system refused has its code; the stack of a bug is kept in `cause`. */
function toKvasirError(thrown: unknown): KvasirError {
	if (thrown instanceof KvasirError) return thrown;
	const refused = systemError(thrown);
	if (refused) return refused;
	const error = thrown instanceof Error ? thrown : new Error(String(thrown));
	return new KvasirError("internal", `Cannot go on: ${error.message}`, { cause: error });
}

/** JSON as every `--json` prints it: bigints as decimal strings, bytes as hex, typed arrays as arrays. */
export function toJson(value: unknown): string {
	return JSON.stringify(value, (_key, item: unknown) => {
		if (typeof item === "bigint") return item.toString();
		if (item instanceof Uint8Array) return Buffer.from(item).toString("hex");
		if (ArrayBuffer.isView(item) && "length" in item) return Array.from(item as unknown as ArrayLike<number>);
		return item;
	});
}

export function printJson(host: Host, value: unknown): void {
	host.stdout.write(`${toJson(value)}\n`);
}

/** Prints an error where it belongs: the envelope on stdout with `--json`, else two lines on stderr. Returns the exit code. */
export function printError(host: Host, thrown: unknown, options: { json: boolean; stack: boolean }): number {
	const error = toKvasirError(thrown);
	if (options.json) printJson(host, errorEnvelope(error));
	else host.stderr.write(`${error.message} [${error.code}]\n  ${hintOf(error)}\n`);
	if (options.stack) host.stderr.write(`${(error.cause instanceof Error ? error.cause : error).stack}\n`);
	return error.exitCode;
}

/** Whether to use colour on a stream: `NO_COLOR` wins, then `FORCE_COLOR`, then a terminal that is not CI's. */
export function usesColour(env: Host["env"], stream: { isTTY?: boolean }): boolean {
	if (env.NO_COLOR) return false;
	const forced = env.FORCE_COLOR;
	if (forced !== undefined) return forced !== "0" && forced !== "false";
	return isTerminal(env, stream);
}

/** A terminal someone looks at: CI and dumb terminals are none. */
export function isTerminal(env: Host["env"], stream: { isTTY?: boolean }): boolean {
	return stream.isTTY === true && !env.CI && env.TERM !== "dumb";
}
