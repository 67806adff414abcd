import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { KvasirError } from "../../errors.ts";
import { builtUrl } from "../../io/built.ts";
import type { EnginePort, EngineReply } from "../engine-port.ts";
import type { DeviceOptions } from "./device-options.ts";

/** Starts gpu-process.ts. Its stderr is this process's: a driver's last words are not lost. */
export function forkDevice(device: DeviceOptions): EnginePort {
	const child = fork(fileURLToPath(builtUrl(import.meta.url, "./gpu-process.js")), [JSON.stringify(device)], {
		serialization: "advanced",
		stdio: ["ignore", "ignore", "inherit", "ipc"],
		execArgv: [],
	});
	const ended = new Promise<Error>((resolve) => {
		child.once("exit", (code, signal) =>
			resolve(new KvasirError("engine_failed", `Cannot compute: the device's process ended with ${signal ?? code}`)),
		);
		child.once("error", resolve);
	});
	const port: EnginePort = {
		post: (call) => void child.send(call, () => {}),
		onReply: () => {},
		onEnd: () => {},
		stop: async () => {
			child.kill("SIGKILL");
			await ended;
		},
	};
	child.on("message", (reply) => port.onReply(reply as EngineReply));
	ended.then((cause) => port.onEnd(cause));
	return port;
}
