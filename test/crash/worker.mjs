// node worker.mjs GATEWAY HOME: the real worker, with an engine that is a formula.
import { built, compute, endWithParent, model, parts, tell } from "./parts.mjs";

const [gateway, home] = process.argv.slice(2);
const { startWorker } = await built("worker/worker");
const { webSocketDialer } = await built("worker/dialer");
const { openWorkerHome } = await built("worker/home");
const { openLocalReceipts } = await built("wallet/local-receipts");
const { localReceiptOf } = await built("commands/join/paid-receipts");
const { loadNodeKey } = await built("wallet/node-key");

const identity = await loadNodeKey(home);
const receipts = await openLocalReceipts(home);
const loaded = new Set();
const matrix = { type: "F32", outputs: 1, inputs: 1, bytes: new Uint8Array(4) };
const worker = await startWorker({
	...parts,
	dial: webSocketDialer({ url: gateway, identity, ...parts }),
	gateway: new URL(gateway).host,
	backbone: null,
	identity,
	payout: identity.publicKey,
	model: {
		name: model.name,
		modelId: model.modelId,
		shape: model,
		weights: { expert: async () => ({ gate: matrix, up: matrix, down: matrix }) },
	},
	hold: () => [0, 1].map((layer) => ({ layer, first: 0, count: model.experts })),
	engine: {
		engineClass: "f32",
		bytesHeld: 0,
		load: async (layer, expert) => void loaded.add(`${layer}:${expert}`),
		unload: async (layer, expert) => void loaded.delete(`${layer}:${expert}`),
		has: (layer, expert) => loaded.has(`${layer}:${expert}`),
		compute,
		close: async () => {},
	},
	engineFacts: { device: "formula", memoryBytes: 2 ** 20, threads: 1, selfCheck: new Uint8Array(0) },
	memoryBytes: 2 ** 20,
	build: "crash",
	home: await openWorkerHome(home, parts.random),
	keepReceipt: (receipt) => receipts.append(localReceiptOf(receipt)),
	signal: new AbortController().signal,
});
worker.closed.catch((error) => tell({ event: "failed", error: String(error) }));
endWithParent(() => worker.drain("stopped", 2_000));
tell({ event: "listening" });
