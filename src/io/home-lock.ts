import { realpath, unlink } from "node:fs/promises";
import net from "node:net";
import { platform, tmpdir } from "node:os";
import { join } from "node:path";
import { KvasirError } from "../errors.ts";
import { sha256 } from "./crypto.ts";
import { systemErrorWords } from "./system-error.ts";

/** What one process at a time does in a home. */
export type HomeRole = "hub" | "gateway" | "backbone" | "worker";

export interface HomeLock {
	/** Again: nothing. */
	release(): void;
}

/**
 * Takes a home for one role by listening on a local socket named after both, which the operating system ends with the process,
 * however that ends; nobody ever talks over it. Throws `home_in_use` where another process has it, `bad_file`.
 */
export async function lockHome(home: string, role: HomeRole): Promise<HomeLock> {
	try {
		const path = socketPath(await realpath(home), role);
		const server = (await listen(path)) ?? ((await removeStale(path)) ? await listen(path) : null);
		if (server !== null) return { release: () => void server.close() };
	} catch (cause) {
		throw new KvasirError("bad_file", `Cannot lock ${home}: ${systemErrorWords(cause)}`, { cause });
	}
	throw new KvasirError("home_in_use", `Cannot start a ${role} in ${home}: another one runs there`, {
		hint: "Stop it, or give each a --home of its own",
	});
}

/** Linux and Windows have names that vanish with the process; elsewhere it is a file. */
function socketPath(home: string, role: HomeRole): string {
	const name = `kvasir-${role}-${Buffer.from(sha256(Buffer.from(home)))
		.toString("hex")
		.slice(0, 32)}`;
	if (platform() === "linux") return `\0${name}`;
	return platform() === "win32" ? `\\\\.\\pipe\\${name}` : join(tmpdir(), name);
}

/** Null: the name is taken. */
function listen(path: string): Promise<net.Server | null> {
	const server = net.createServer((socket) => socket.destroy()).unref();
	return new Promise((resolve, reject) => {
		server.once("error", (error: NodeJS.ErrnoException) => {
			if (error.code === "EADDRINUSE") resolve(null);
			else reject(error);
		});
		server.listen(path, () => resolve(server));
	});
}

/** Removes a socket's file that a killed process left; false where somebody listens, or the name is no file. */
async function removeStale(path: string): Promise<boolean> {
	if (platform() === "linux" || platform() === "win32") return false;
	const dead = await new Promise<boolean>((resolve) => {
		const socket = net.connect(path);
		socket.once("connect", () => resolve(false)).once("error", () => resolve(true));
		socket.once("connect", () => socket.destroy());
	});
	if (dead) await unlink(path);
	return dead;
}
