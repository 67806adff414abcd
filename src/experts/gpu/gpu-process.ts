import process from "node:process";
import type { EngineReply } from "../engine-port.ts";
import { serveEngine } from "../serve-engine.ts";
import { openDevice } from "./adapters.ts";
import { GpuEngine } from "./gpu-engine.ts";

// The entry of the process that owns a graphics device: its crash takes nothing else along. Arguments: adapter id, bytes of device
// memory. It ends when its parent goes, and when the device is lost: a fresh process opens the device again.
const [, , adapterId = "", memoryBytes = "0"] = process.argv;

const send = (reply: EngineReply) => {
	process.send?.(reply);
};
const serve = serveEngine(async () => {
	const open = await openDevice(adapterId);
	open.device.lost.then(() => process.exit(1));
	return new GpuEngine(open, Number(memoryBytes));
}, send);

process.on("message", serve);
process.on("disconnect", () => process.exit(0));
