import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import type { Declaration } from "./declaration.ts";
import type { Host } from "./host.ts";
import type { GlobalOptions } from "./settings.ts";

/** One event of a long-running command: a line of JSON on stdout. */
export interface Event {
	readonly event: string;
	readonly [field: string]: unknown;
}

/** What a command gets from outside; nothing else of the process is touched below it. */
export interface Context {
	readonly home: string;
	readonly global: GlobalOptions;
	readonly host: Host;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
	/** Aborts at the first Ctrl-C or SIGTERM: finish what runs, say goodbye. */
	readonly signal: AbortSignal;
	/** Calls `fn` on each SIGHUP; the returned function ends that. */
	onHangup(fn: () => void): () => void;
	/** A line of JSON on stdout with `--json`, else `text` on stderr where it is given. */
	emit(event: Event, text?: string): void;
	/** Data on stdout as it comes (streamed tokens); nothing with `--json`. */
	write(text: string): void;
	/** Shows on a terminal that `work` is going on, once it has taken a second. */
	progress<T>(label: string, work: (say: (label: string) => void) => Promise<T>): Promise<T>;
	/** Every command's declaration, for those that tell about commands. */
	declarations(): Promise<readonly Declaration[]>;
	/** A secret from a terminal prompt; throws `usage` where stdin is no terminal. */
	askSecret(question: string, hint: string): Promise<string>;
}
