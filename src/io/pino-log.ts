import type { Writable } from "node:stream";
import type { Logger } from "./log.ts";

export type LogLevel = "error" | "warn" | "info" | "debug";

export interface LogOptions {
	readonly level: LogLevel;
	readonly stream: Writable;
	/** Lines for people instead of JSON. */
	readonly text: boolean;
}

/** A logger that writes one line per entry to `stream`. */
export async function pinoLog({ level, stream, text }: LogOptions): Promise<Logger> {
	const { pino } = await import("pino");
	const target = text ? { write: (line: string) => void stream.write(formatEntry(line)) } : stream;
	const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, target);
	return logger as unknown as Logger;
}

const levelNames: Readonly<Record<number, string>> = { 20: "debug", 30: "info", 40: "warn", 50: "error" };

/** One JSON entry as `12:00:01 warn message, key value`. */
function formatEntry(line: string): string {
	const { level, time, msg, ...facts } = JSON.parse(line) as { level: number; time: string; msg: string };
	const shown = Object.entries(facts).map(
		([key, value]) => `${key} ${typeof value === "string" ? value : JSON.stringify(value)}`,
	);
	return `${[`${time.slice(11, 19)} ${levelNames[level] ?? level} ${msg}`, ...shown].join(", ")}\n`;
}
