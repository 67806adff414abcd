import { describe, expect, it } from "vitest";
import { startParkedBackbone } from "../../test/support/parked-backbone.ts";
import {
	dialWorker,
	eventually,
	nextMessage,
	realParts,
	startSpliceSwarm,
	testKey,
} from "../../test/support/splice-swarm.ts";
import { addressOf } from "../io/base58.ts";
import { webSocketDialer } from "../worker/dialer.ts";

describe("a worker spliced through gateway and hub to a parked backbone", () => {
	it("exchanges messages of 1 B to 1 MiB both ways, byte for byte", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		for (const length of [1, 125, 126, 12_288, 65_535, 65_536, 98_304, 1 << 20]) {
			const sent = Buffer.alloc(length, length % 251);
			worker.send(sent);
			expect((await nextMessage(worker)).equals(sent)).toBe(true);
		}
		worker.terminate();
	});

	it("tells the backbone who the worker is and under which relay it is counted", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		const { headers, url } = swarm.backbone.requests[0]!;
		expect(url).toBe("/v1/relay?model=tiny");
		expect(headers["x-kvasir-key"]).toBe(addressOf(testKey(1).publicKey));
		expect(headers["x-kvasir-peer"]).toBe("127.0.0.1");
		expect(headers["x-kvasir-relay"]).toMatch(/^[0-9a-f]{32}$/);
		expect(headers.authorization).toBeUndefined();
		worker.terminate();
	});

	it("counts the bytes of a relay exactly and stores them when it ends", async () => {
		await using swarm = await startSpliceSwarm();
		const worker = await dialWorker(swarm.host);
		worker.send(Buffer.alloc(1_000));
		await nextMessage(worker);
		worker.terminate();
		await eventually("the counters are stored", () => {
			const [row] = swarm.relays.rows.values();
			return row !== undefined && row.bytesFromWorker > 0;
		});
		const [row] = swarm.relays.rows.values();
		// Frames: 4 bytes of header, and 4 of mask on the way up.
		expect(row).toMatchObject({ bytesFromWorker: 1_008, bytesToWorker: 1_004, model: "tiny" });
		expect(row!.relay).toBe(swarm.backbone.requests[0]!.headers["x-kvasir-relay"]);
	});

	it("replenishes: more workers than parked connections come through at once", async () => {
		await using swarm = await startSpliceSwarm();
		const workers = await Promise.all(Array.from({ length: 8 }, () => dialWorker(swarm.host)));
		for (const worker of workers) {
			worker.send("x");
			await nextMessage(worker);
			worker.terminate();
		}
		expect(workers).toHaveLength(8);
	});
});

describe("a hub where backbones of two models park", () => {
	it("ties a worker to the model it names, and tells one that names none to name one", async () => {
		await using swarm = await startSpliceSwarm();
		const other = await startParkedBackbone({ hub: swarm.hub.relay, identity: testKey(200), model: "other" });
		const dial = (model?: string) =>
			webSocketDialer({ url: `ws://${swarm.host}`, identity: testKey(1), model, ...realParts })({});
		await expect(dial()).rejects.toMatchObject({ code: "usage", facts: { status: 409, reason: "model_needed" } });
		const [here, there] = [await dial("tiny"), await dial("other")];
		expect(swarm.backbone.requests.map(({ url }) => url)).toEqual(["/v1/relay?model=tiny"]);
		expect(other.requests.map(({ url }) => url)).toEqual(["/v1/relay?model=other"]);
		here.terminate();
		there.terminate();
		await other.close();
	});
});
