import { armFailpoints } from "../../io/arm-failpoints.ts";
import { systemClock } from "../../io/clock.ts";
import { pinoLog } from "../../io/pino-log.ts";
import { systemRandom } from "../../io/random.ts";
import { askSecret } from "./ask-secret.ts";
import type { Context } from "./context.ts";
import type { Host } from "./host.ts";
import { isTerminal, printJson } from "./output.ts";
import { withProgress } from "./progress.ts";
import type { GlobalOptions } from "./settings.ts";

// A drain may take receipts a while; a parent that is gone must not leave a child behind for longer than this.
const orphanExitMs = 15_000;

export interface OpenContext {
	readonly context: Context;
	/** Takes the handlers off again; the exit code of the signal that ended the command, if one did. */
	close(): Promise<number | undefined>;
}

/** Builds what a command gets, and ties signals to it: the first asks to drain, the second quits. SIGHUP is for those who listen; nobody: the terminal is gone, so it drains. */
export async function makeContext(parts: {
	host: Host;
	global: GlobalOptions;
	home: string;
	declarations: Context["declarations"];
}): Promise<OpenContext> {
	const { host, global, home, declarations } = parts;
	// For tests of what a crash leaves behind: KVASIR_TEST_FAILPOINTS=FILE, only under NODE_ENV=test.
	if (host.env.NODE_ENV === "test") armFailpoints(host.env.KVASIR_TEST_FAILPOINTS);
	const log = await pinoLog({
		level: global.quiet ? "error" : global.logLevel,
		stream: host.stderr,
		text: isTerminal(host.env, host.stderr),
	});
	const stop = new AbortController();
	let signalCode: number | undefined;
	const onStop = (name: string, code: number) => {
		if (signalCode !== undefined) return host.exit(code);
		signalCode = code;
		stop.abort(new Error(name));
	};
	const hangups = new Set<() => void>();
	const onHangup = () => {
		if (hangups.size === 0) return onStop("SIGHUP", 129);
		for (const fn of hangups) fn();
	};
	const offs = [
		host.onSignal("SIGINT", () => onStop("SIGINT", 130)),
		host.onSignal("SIGTERM", () => onStop("SIGTERM", 143)),
		host.onSignal("SIGHUP", onHangup),
		watchParent(host, stop),
	];
	const context: Context = {
		home,
		global,
		host,
		clock: systemClock,
		random: systemRandom,
		log,
		signal: stop.signal,
		onHangup(fn) {
			hangups.add(fn);
			return () => hangups.delete(fn);
		},
		emit(event, text) {
			if (global.json) printJson(host, event);
			else if (text !== undefined && !global.quiet) host.stderr.write(`${text}\n`);
		},
		write(text) {
			if (!global.json) host.stdout.write(text);
		},
		progress: (label, work) => withProgress(host, global, label, work),
		declarations,
		askSecret: (question, hint) => askSecret(host, question, hint),
	};
	return {
		context,
		async close() {
			for (const off of offs) off();
			return signalCode;
		},
	};
}

/** With KVASIR_PARENT=stdin the command drains when stdin ends: whoever started it is gone, however it went. */
function watchParent(host: Host, stop: AbortController): () => void {
	if (host.env.KVASIR_PARENT !== "stdin") return () => {};
	const gone = () => {
		stop.abort(new Error("the parent is gone"));
		systemClock.after(orphanExitMs, () => host.exit(1));
	};
	host.stdin.once("end", gone).once("error", gone).resume();
	return () => host.stdin.off("end", gone).pause();
}
