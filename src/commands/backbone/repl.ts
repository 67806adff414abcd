import { createInterface } from "node:readline/promises";
import { KvasirError } from "../../errors.ts";
import type { Outcome } from "../program/command.ts";
import type { Context } from "../program/context.ts";
import { type Ask, decodePrompts, describeRun } from "./decode-prompts.ts";
import type { DispatchRoom } from "./open-dispatch.ts";

/** Decodes each line that is typed, until the input ends. Lines from a pipe are decoded the same way, without a prompt sign. */
export async function runRepl(context: Context, room: DispatchRoom, ask: Ask): Promise<Outcome<never>> {
	const { host, signal } = context;
	const terminal = host.stdin.isTTY === true;
	const lines = createInterface({ input: host.stdin, output: host.stderr, terminal, prompt: "> " });
	signal.addEventListener("abort", () => lines.close(), { once: true });
	try {
		if (terminal) lines.prompt();
		for await (const line of lines) {
			if (line.trim() !== "") await answer(context, room, line, ask);
			if (signal.aborted) break;
			if (terminal) lines.prompt();
		}
		return {};
	} finally {
		lines.close();
	}
}

async function answer(context: Context, room: DispatchRoom, line: string, ask: Ask): Promise<void> {
	try {
		const run = await decodePrompts(context, room, [line], ask);
		context.emit({ event: "done", ...run }, describeRun(run));
	} catch (error) {
		// One prompt that cannot be decoded does not end the conversation.
		if (!(error instanceof KvasirError) || context.signal.aborted) throw error;
		context.emit({ event: "failed", prompt: line, code: error.code, message: error.message });
		context.log.error({ code: error.code }, error.message);
	}
}
