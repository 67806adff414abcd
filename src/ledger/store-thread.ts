import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { KvasirError } from "../errors.ts";
import { armFailpoints } from "../io/arm-failpoints.ts";
import { systemClock } from "../io/clock.ts";
import { systemRandom } from "../io/random.ts";
import { openGatewayStore } from "./gateway-store.ts";
import { openHubStore } from "./hub-store.ts";
import type { StoreCall, StoreReply, StoreThreadData } from "./store-calls.ts";

// The thread that owns a store: libsql blocks while it writes, and the thread with the sockets must not.

const port = parentPort as MessagePort;
const reply = (message: StoreReply) => port.postMessage(message);

async function open(data: StoreThreadData) {
	const parts = { clock: systemClock, random: systemRandom };
	if (data.kind === "gateway") {
		const store = await openGatewayStore(data.location, { ...parts, ...data.options });
		return { store, ledgerId: "" };
	}
	const store = await openHubStore(data.location, { ...parts, ...data.options, onHead: (head) => reply({ head }) });
	return { store, ledgerId: store.ledgerId };
}

function failure(error: unknown): Extract<StoreReply, { error: unknown }>["error"] {
	if (error instanceof KvasirError) return { code: error.code, message: error.message, hint: error.hint };
	return {
		code: "ledger",
		message: `Cannot use the ledger: ${error instanceof Error ? error.message : String(error)}`,
	};
}

armFailpoints((workerData as StoreThreadData).failpoints);
const opening = open(workerData as StoreThreadData);
opening.then(
	({ ledgerId }) => reply({ opened: ledgerId }),
	(error: unknown) => reply({ id: 0, error: failure(error) }),
);

port.on("message", async ({ id, method, args }: StoreCall) => {
	try {
		const { store } = await opening;
		const call = (store as unknown as Record<string, (...args: readonly unknown[]) => Promise<unknown>>)[method]!;
		const value = await call(...args);
		reply({ id, value });
		if (method === "close") port.close();
	} catch (error) {
		reply({ id, error: failure(error) });
	}
});
