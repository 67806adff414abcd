import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { errorFromPlain, KvasirError, type PlainError } from "../../errors.ts";
import { builtUrl } from "../../io/built.ts";
import type { Clock } from "../../io/clock.ts";
import type { Adapter } from "./adapters.ts";

/** A driver that says nothing for so long is not waited for. */
const answerMs = 4_000;

/** Every adapter of this machine, asked for in a process of its own. Throws `gpu_unavailable`. */
export function askAdapters(clock: Clock): Promise<Adapter[]> {
	const child = fork(fileURLToPath(builtUrl(import.meta.url, "./adapter-process.js")), [], {
		stdio: ["ignore", "ignore", "ignore", "ipc"],
		execArgv: [],
	});
	return new Promise<Adapter[]>((resolve, reject) => {
		const fail = (state: string) =>
			reject(
				new KvasirError("gpu_unavailable", `Cannot list graphics devices: ${state}`, { hint: "Update the driver" }),
			);
		const cancel = clock.after(answerMs, () => {
			child.kill("SIGKILL");
			fail(`the driver did not answer within ${answerMs / 1000} s`);
		});
		child.once("message", (answer: { adapters: Adapter[] } | { error: PlainError }) => {
			if ("adapters" in answer) resolve(answer.adapters);
			else reject(errorFromPlain(answer.error));
		});
		child.once("error", ({ message }) => fail(message));
		child.once("exit", (code, signal) => {
			cancel();
			fail(`the driver ended the process with ${signal ?? code}`);
		});
	});
}
