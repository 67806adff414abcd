import { readdir, readFile, readlink } from "node:fs/promises";

/** Command lines of the processes that name `needle`, such as a temporary home; none where there is no /proc. */
export async function processesNaming(needle: string): Promise<string[]> {
	const pids = (await readdir("/proc").catch(() => [])).filter(
		(name) => /^\d+$/.test(name) && Number(name) !== process.pid,
	);
	const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
	return commands.map((command) => command.replaceAll("\0", " ").trim()).filter((command) => command.includes(needle));
}

/** Ports that a process of this pid listens on, from its open sockets. */
export async function listeningPortsOf(pid: number): Promise<number[]> {
	const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
	const links = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => "")));
	const inodes = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
	const tables = await Promise.all(
		["tcp", "tcp6"].map((name) => readFile(`/proc/${pid}/net/${name}`, "utf8").catch(() => "")),
	);
	const rows = tables.flatMap((table) =>
		table
			.split("\n")
			.slice(1)
			.map((line) => line.trim().split(/\s+/)),
	);
	const listening = "0A";
	const ports = rows.filter((row) => row[3] === listening && inodes.has(row[9] ?? ""));
	return ports.map((row) => Number.parseInt(row[1]!.split(":").at(-1)!, 16));
}
