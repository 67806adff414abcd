import process from "node:process";
import { systemClock } from "../../io/clock.ts";
import type { ExpertEngine } from "../engine.ts";
import type { EngineReply } from "../engine-port.ts";
import { openOnnxEngine } from "../onnx/onnx-engine.ts";
import { serveEngine } from "../serve-engine.ts";
import { openDevice } from "./adapters.ts";
import type { DeviceOptions } from "./device-options.ts";
import { proofBytes, proveDevice, proveProvider } from "./device-proof.ts";
import { GpuEngine } from "./gpu-engine.ts";

// The entry of the process that owns a graphics device: its crash takes nothing else along. Its argument: DeviceOptions as JSON.
// The device is proved before it is used. The process ends when its parent goes, and when the device is lost: a fresh process
// opens the device again.
const device = JSON.parse(process.argv[2] ?? "{}") as DeviceOptions;

const send = (reply: EngineReply) => {
	process.send?.(reply);
};

async function open(): Promise<ExpertEngine> {
	if (device.engine === "onnx") {
		const { provider, name, id } = device;
		const openSmall = (hidden: number) => openOnnxEngine({ ...device, hidden, device: name });
		const proof = await proveProvider(openSmall, { id, name, provider }, systemClock);
		return Object.assign(await openSmall(device.hidden), { proof });
	}
	const opened = await openDevice(device.adapter);
	opened.device.lost.then(() => process.exit(1));
	const engine = new GpuEngine(opened, proofBytes);
	const proof = await proveDevice(engine, opened.facts, systemClock);
	engine.limitMemory(device.memoryBytes);
	return Object.assign(engine, { proof });
}

process.on("message", serveEngine(open, send));
process.on("disconnect", () => process.exit(0));
