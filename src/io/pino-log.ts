import type { Writable } from "node:stream";
import type { Logger } from "./log.ts";

export type LogLevel = "error" | "warn" | "info" | "debug";

/** A pino logger writing one line of JSON per entry to `stream`. Nothing is loaded before something is really said. */
export async function pinoLog(options: { level: LogLevel; stream: Writable }): Promise<Logger> {
	const { pino } = await import("pino");
	const logger = pino({ level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, options.stream);
	return logger as unknown as Logger;
}
