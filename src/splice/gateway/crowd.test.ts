import { expect, it } from "vitest";
import { dialWorker, eventually, nextMessage, startSpliceSwarm, testKey } from "../../../test/support/splice-swarm.ts";
import { addressOf } from "../../io/base58.ts";

it("a crowd of workers comes at once, works at once and leaves at once: every byte is counted, nothing is left", async () => {
	const crowd = 60;
	await using swarm = await startSpliceSwarm({
		gateway: { limits: { admitRatePerSecond: 1_000 } },
		backbone: { park: 4 },
	});
	const workers = await Promise.all(
		Array.from({ length: crowd }, (_, i) => dialWorker(swarm.host, { identity: testKey(i + 1) })),
	);
	await Promise.all(
		workers.map(async (worker, i) => {
			const sent = Buffer.alloc(10_000 + i, i);
			worker.send(sent);
			expect((await nextMessage(worker)).equals(sent)).toBe(true);
		}),
	);
	for (const worker of workers) worker.terminate();
	await eventually("every relay has ended", async () => {
		const metrics = await (await fetch(`http://127.0.0.1:${swarm.hub.api.port}/metrics`)).text();
		return metrics.includes("kvasir_hub_relays 0") && swarm.backbone.sockets.size === 0;
	});
	// Frames above 125 bytes: 4 bytes of header, and 4 of mask on the way up.
	const expected = workers.map((_, i) => [addressOf(testKey(i + 1).publicKey), 10_008 + i, 10_004 + i]);
	const counted = [...swarm.relays.rows.values()].map((row) => [row.worker, row.bytesFromWorker, row.bytesToWorker]);
	expect(counted.sort()).toEqual(expected.sort());
	const status = await (await fetch(`http://127.0.0.1:${swarm.gateway.admin.port}/status`)).json();
	expect(status).toMatchObject({ linkCount: 0 });
	await eventually("the backbone parked again", () => swarm.backbone.parked === 4);
});
