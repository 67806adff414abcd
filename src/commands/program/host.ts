import type { Readable, Writable } from "node:stream";

/** The process as commands see it; a test hands in another one. */
export interface Host {
	readonly argv: readonly string[];
	readonly env: Readonly<Record<string, string | undefined>>;
	readonly stdin: Readable & { isTTY?: boolean; setRawMode?(on: boolean): unknown };
	readonly stdout: Writable & { isTTY?: boolean; columns?: number };
	readonly stderr: Writable & { isTTY?: boolean };
	readonly platform: string;
	readonly userHome: string;
	/** The Node binary, and its version. */
	readonly execPath: string;
	readonly nodeVersion: string;
	/** Bytes this process may still take, a container's limit respected. */
	availableMemory(): number;
	/** Milliseconds of CPU time used so far, by all threads. */
	cpuMs(): number;
	onSignal(name: "SIGINT" | "SIGTERM" | "SIGHUP", fn: () => void): () => void;
	/** Calls `fn`, which may not wait for anything, when the process ends; the last one given is called first. */
	onExit(fn: () => void): () => void;
	/** Ends the process at once. */
	exit(code: number): void;
}
