import type { Readable } from "node:stream";
import { type ErrorCode, exitCodes, KvasirError } from "../errors.ts";
import type { Clock } from "../io/clock.ts";

/** One line of JSON that a process printed. */
export interface ProcessEvent {
	readonly event: string;
	readonly [field: string]: unknown;
}

/** The events of one process: those that came are kept, those to come can be waited for. */
export interface EventLog {
	readonly all: readonly ProcessEvent[];
	/** The first event, past or to come, that matches. Throws `timeout`, or what ended the process. */
	waitFor(match: (event: ProcessEvent) => boolean, deadlineMs: number): Promise<ProcessEvent>;
	/** Calls `fn` for every event to come. */
	onEvent(fn: (event: ProcessEvent) => void): void;
}

const eventsMax = 100_000;
const lineBytesMax = 4 * 2 ** 20;

interface Waiter {
	match(event: ProcessEvent): boolean;
	resolve(event: ProcessEvent): void;
	reject(error: KvasirError): void;
}

/**
 * Reads NDJSON from a process's stdout.
 *
 * @param problem the end of what it wrote on stderr, for errors
 */
export function readEvents(stdout: Readable, options: { clock: Clock; name: string; problem: () => string }): EventLog {
	const all: ProcessEvent[] = [];
	const waiters = new Set<Waiter>();
	const listeners: ((event: ProcessEvent) => void)[] = [];
	let end: KvasirError | null = null;
	let failure: KvasirError | null = null;
	let rest = "";
	stdout.setEncoding("utf8");
	stdout.on("data", (chunk: string) => {
		const lines = (rest + chunk).split("\n");
		rest = lines.pop()!.slice(0, lineBytesMax);
		for (const line of lines) if (line) take(line);
	});
	const take = (line: string) => {
		const value = parseLine(line);
		if (value?.ok === false) failure = childError(options.name, value);
		if (typeof value?.event !== "string" || all.length >= eventsMax) return;
		const event = value as ProcessEvent;
		all.push(event);
		for (const listener of listeners) listener(event);
		for (const waiter of [...waiters]) if (waiter.match(event)) waiter.resolve(event);
	};
	stdout.once("close", () => {
		if (rest) take(rest);
		const said = options.problem();
		end = failure ?? new KvasirError("failed", `Cannot go on: ${options.name} ended${said ? `: ${said}` : ""}`);
		for (const waiter of [...waiters]) waiter.reject(end);
	});
	return {
		all,
		onEvent: (fn) => void listeners.push(fn),
		waitFor(match, deadlineMs) {
			const past = all.find(match);
			if (past) return Promise.resolve(past);
			if (end) return Promise.reject(end);
			return new Promise((resolve, reject) => {
				const waiter: Waiter = {
					match,
					resolve: (event) => settle(() => resolve(event)),
					reject: (error) => settle(() => reject(error)),
				};
				const settle = (done: () => void) => {
					waiters.delete(waiter);
					cancel();
					done();
				};
				const cancel = options.clock.after(deadlineMs, () => {
					const said = options.problem();
					const text = `Cannot wait for ${options.name}: nothing in ${deadlineMs} ms${said ? `: ${said}` : ""}`;
					waiter.reject(new KvasirError("timeout", text));
				});
				waiters.add(waiter);
			});
		},
	};
}

function parseLine(line: string): Record<string, unknown> | null {
	try {
		const value: unknown = JSON.parse(line);
		return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
	} catch {
		return null;
	}
}

function childError(name: string, envelope: Record<string, unknown>): KvasirError {
	const error = (envelope.error ?? {}) as { code?: string; message?: string; hint?: string | null };
	const code = error.code !== undefined && error.code in exitCodes ? (error.code as ErrorCode) : "failed";
	return new KvasirError(code, error.message ?? `Cannot go on: ${name} failed`, {
		...(error.hint ? { hint: error.hint } : {}),
		facts: { process: name },
	});
}
