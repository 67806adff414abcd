import { parentPort, workerData } from "node:worker_threads";
import { plainError } from "../errors.ts";
import { systemClock } from "../io/clock.ts";
import { openCanonicalEngine } from "./canonical/canonical-engine.ts";
import { passSelfCheck, type SelfCheckReply } from "./machine-self-check.ts";

// The entry of the thread behind checkThisMachine().

/** Room for the largest expert of the check, twice. */
const memoryBytes = 24 * 1024 ** 2;

parentPort!.postMessage(await answer());

async function answer(): Promise<SelfCheckReply> {
	try {
		const engine = await openCanonicalEngine({ memoryBytes, threads: workerData as number });
		const passed = await passSelfCheck(engine, systemClock);
		await engine.close();
		return { passed };
	} catch (error) {
		return { error: plainError(error) };
	}
}
