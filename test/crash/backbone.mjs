// node backbone.mjs HUB_PORT HOME: the real backbone, asking for random rows instead of decoding. Receipts go out every 50 ms.
// SIGUSR2: ask no more; SIGCONT: go on. Each journal is also linked into HOME/kept, where it outlives its acknowledgement.
import { linkSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { built, compute, endWithParent, model, parts, tell } from "./parts.mjs";

const [hubPort, home] = process.argv.slice(2);
const { startBackbone } = await built("backbone/backbone");
const { loadNodeKey } = await built("wallet/node-key");

const journals = join(home, "journals");
const kept = join(home, "kept");
for (const folder of [journals, kept]) mkdirSync(folder, { recursive: true });
function keepJournals() {
	for (const name of readdirSync(journals)) {
		try {
			linkSync(join(journals, name), join(kept, name));
		} catch (error) {
			if (error.code !== "EEXIST" && error.code !== "ENOENT") throw error;
		}
	}
}
keepJournals();

const backbone = await startBackbone({
	...parts,
	identity: await loadNodeKey(home),
	model,
	hub: { host: "127.0.0.1", port: Number(hubPort) },
	park: 2,
	journals,
	deadlineMs: 2_000,
	audits: { engineClass: "f32", recompute: compute },
});
backbone.subscribe(({ event }) => {
	if (event === "joined") keepJournals();
});
let asking = true;
process.on("SIGUSR2", () => {
	asking = false;
});
process.on("SIGCONT", () => {
	asking = true;
});

async function ask() {
	for (let sequence = 1; ; sequence++) {
		if (!asking || !backbone.remote.holds(0, 0)) {
			await sleep(20);
			continue;
		}
		const rowCount = 1 + Math.floor(Math.random() * 3);
		await backbone.remote.request({
			layer: sequence % model.layers,
			rowCount,
			rows: Float32Array.from({ length: rowCount * model.hidden }, () => Math.floor(Math.random() * 16)),
			rowIndex: Uint16Array.from({ length: rowCount * model.topK }, (_, i) => Math.floor(i / model.topK)),
			expert: Uint16Array.from({ length: rowCount * model.topK }, (_, i) => (sequence + i) % model.experts),
			weight: new Float32Array(rowCount * model.topK).fill(0.5),
			phase: "decode",
			sequence: Array.from({ length: rowCount }, () => sequence),
		});
		await sleep(2);
	}
}

async function issue() {
	for (;;) {
		await backbone.flushReceipts();
		await sleep(50);
	}
}

endWithParent(async () => {
	asking = false;
	await backbone.drain("stopped", 2_000);
	await backbone.close();
});
void ask();
void issue();
tell({ event: "listening" });
