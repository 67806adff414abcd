import process from "node:process";
import { systemClock } from "../../io/clock.ts";
import type { ExpertEngine } from "../engine.ts";
import type { EngineReply } from "../engine-port.ts";
import { serveEngine } from "../serve-engine.ts";
import { openDevice } from "./adapters.ts";
import { proveDevice } from "./device-proof.ts";
import { GpuEngine } from "./gpu-engine.ts";

// The entry of the process that owns a graphics device: its crash takes nothing else along. Arguments: adapter id, bytes of device
// memory. The device is proved before it is used. The process ends when its parent goes, and when the device is lost: a fresh
// process opens the device again.
const [, , adapterId = "", memoryBytes = "0"] = process.argv;

const send = (reply: EngineReply) => {
	process.send?.(reply);
};

async function open(): Promise<ExpertEngine> {
	const opened = await openDevice(adapterId);
	opened.device.lost.then(() => process.exit(1));
	const engine = new GpuEngine(opened, Number(memoryBytes));
	return Object.assign(engine, { proof: await proveDevice(engine, opened.facts, systemClock) });
}

process.on("message", serveEngine(open, send));
process.on("disconnect", () => process.exit(0));
