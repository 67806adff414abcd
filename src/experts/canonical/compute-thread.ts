import { parentPort, workerData } from "node:worker_threads";
import { control } from "./job.ts";
import { Runner, type Shared } from "./runner.ts";

// The entry of a compute thread: sleeps until a job is posted, runs units of it until none is left, and the last thread to finish
// says so. It never returns to its event loop while the engine is open.

const { shared, slot, announce } = workerData as { shared: Shared; slot: number; announce: boolean };
const runner = new Runner(shared, slot);
const words = shared.control;

/** Turns of a loop before a thread without work goes to sleep: a job often follows the last within microseconds. */
const spins = 4000;

parentPort!.postMessage({ started: slot });

let seen = 0;
for (;;) {
	for (let turn = 0; turn < spins && Atomics.load(words, control.generation) === seen; turn++);
	Atomics.wait(words, control.generation, seen);
	seen = Atomics.load(words, control.generation);
	if (Atomics.load(words, control.stop) !== 0) break;
	let crash: unknown;
	try {
		runner.run();
	} catch (error) {
		crash = error;
	}
	const last = Atomics.sub(words, control.running, 1) === 1;
	Atomics.notify(words, control.running);
	if (crash) parentPort!.postMessage({ crash });
	if (last && announce) parentPort!.postMessage({ finished: seen });
}
