import { formatMs } from "../io/format-amounts.ts";
import type { DeviceProof } from "./engine.ts";

/** A device's proof in one line: `webgpu:ID (name): self-check passed in 0.9 s; 16 rows in 0.4 ms, one CPU core 9.1 ms`. */
export function describeProof({ id, name, selfCheckMs, deviceMs, cpuMs, rows }: DeviceProof): string {
	const times = `${rows} rows of an expert in ${formatMs(deviceMs)}, one CPU core ${formatMs(cpuMs)}`;
	return `${id} (${name}): self-check passed in ${formatMs(selfCheckMs)}; ${times}`;
}
