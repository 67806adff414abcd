import { readFile } from "node:fs/promises";
import { KvasirError } from "../errors.ts";

/** What a process has taken so far, as the kernel counts it. */
export interface ProcessUse {
	/** Processor time of all its threads, user and system, milliseconds in steps of 10. */
	readonly cpuMs: number;
	/** Memory that it holds, bytes. */
	readonly residentBytes: number;
}

/** The kernel counts for programs in ticks of 10 ms on every processor that Node runs on (USER_HZ, proc(5)). */
const tickMs = 10;

/** Reads a process's use. Throws `failed` where there is no `/proc/PID` (another system than Linux, or the process is gone). */
export async function processUse(pid: number): Promise<ProcessUse> {
	try {
		const [stat, status] = await Promise.all(
			["stat", "status"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8")),
		);
		return { cpuMs: cpuMsOf(stat!), residentBytes: residentBytesOf(status!) };
	} catch (cause) {
		throw new KvasirError("failed", `Cannot measure process ${pid}: /proc/${pid} cannot be read`, {
			cause,
			hint: "Processor time and memory of other processes are read from /proc, which only Linux has",
		});
	}
}

/** utime and stime of a `/proc/PID/stat` line: fields 14 and 15; the name, field 2, is in brackets and may hold anything. */
export function cpuMsOf(stat: string): number {
	const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
	return (Number(fields[11]) + Number(fields[12])) * tickMs;
}

/** `VmRSS` of a `/proc/PID/status`, bytes. */
export function residentBytesOf(status: string): number {
	return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) * 1024;
}
