import { PassThrough, Writable } from "node:stream";
import type { Host } from "../../src/commands/program/host.ts";

/** A process made of memory: what was written is text, signals are sent by hand, exits are noted. */
export interface MemoryHost extends Host {
	out(): string;
	err(): string;
	readonly exits: number[];
	send(name: "SIGINT" | "SIGTERM" | "SIGHUP"): void;
}

/** @param terminal stdin, stdout and stderr look like a terminal */
export function memoryHost(
	argv: readonly string[],
	options: { env?: Record<string, string>; terminal?: boolean } = {},
): MemoryHost {
	const [stdout, stderr] = [sink(), sink()];
	const tty = options.terminal ? { isTTY: true } : {};
	const listeners = new Map<string, Set<() => void>>();
	const exits: number[] = [];
	return {
		argv,
		env: options.env ?? {},
		stdin: Object.assign(new PassThrough(), tty),
		stdout: Object.assign(stdout.stream, tty),
		stderr: Object.assign(stderr.stream, tty),
		platform: "linux",
		userHome: "/nowhere",
		execPath: process.execPath,
		nodeVersion: process.version,
		availableMemory: () => 8 * 2 ** 30,
		cpuMs: () => process.cpuUsage().user / 1000,
		onSignal(name, fn) {
			const fns = listeners.get(name) ?? new Set();
			listeners.set(name, fns.add(fn));
			return () => fns.delete(fn);
		},
		onExit: () => () => {},
		exit: (code) => void exits.push(code),
		exits,
		out: stdout.text,
		err: stderr.text,
		send: (name) => {
			for (const fn of listeners.get(name) ?? []) fn();
		},
	};
}

function sink() {
	let text = "";
	const stream = new Writable({
		write(chunk, _encoding, done) {
			text += String(chunk);
			done();
		},
	});
	return { stream, text: () => text };
}
