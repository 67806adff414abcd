import { once } from "node:events";
import net, { type AddressInfo, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Impairment, startImpairingRelay } from "./impairing-relay.ts";
import { seededRandom } from "./seeded-random.ts";
import { until } from "./until.ts";

async function echoBehind(impairment: Impairment) {
	const server = net.createServer((socket) => socket.on("error", () => {}).pipe(socket));
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => void server.close());
	const relay = await startImpairingRelay(
		{ host: "127.0.0.1", port: (server.address() as AddressInfo).port },
		impairment,
	);
	const socket = net.connect({ host: "127.0.0.1", port: relay.port, noDelay: true });
	socket.on("error", () => {});
	await once(socket, "connect");
	onTestFinished(async () => {
		socket.destroy();
		await relay[Symbol.asyncDispose]();
	});
	return { relay, socket };
}

async function exchange(socket: Socket, bytes: Uint8Array): Promise<{ same: boolean; ms: number }> {
	const startMs = performance.now();
	const parts: Buffer[] = [];
	let length = 0;
	const all = new Promise<void>((resolve) => {
		socket.on("data", (part: Buffer) => {
			parts.push(part);
			length += part.length;
			if (length >= bytes.length) resolve();
		});
	});
	socket.write(bytes);
	await all;
	return { same: Buffer.concat(parts).equals(bytes), ms: performance.now() - startMs };
}

describe("startImpairingRelay()", () => {
	it("delays each way, and keeps bytes and their order whatever the jitter", async () => {
		const { socket } = await echoBehind({ delayMs: 40, jitterMs: 20, stallShare: 0.1, stallMs: 50 });
		const { same, ms } = await exchange(socket, seededRandom(3).bytes(200_000));
		expect(same).toBe(true);
		expect(ms).toBeGreaterThanOrEqual(80);
	});

	it("limits the rate", async () => {
		const { socket } = await echoBehind({ bytesPerSecond: 250_000 });
		const { same, ms } = await exchange(socket, seededRandom(3).bytes(100_000));
		expect(same).toBe(true);
		expect(ms).toBeGreaterThanOrEqual(390);
	});

	it("drops one way or both without a word, and resets", async () => {
		const { relay, socket } = await echoBehind({});
		await exchange(socket, Buffer.from("hello"));
		let heard = 0;
		socket.on("data", (part) => {
			heard += part.length;
		});
		relay.drop("down");
		socket.write("lost on the way back");
		const second = net.connect({ host: "127.0.0.1", port: relay.port });
		second.on("error", () => {});
		await once(second, "connect");
		expect((await exchange(second, Buffer.from("after"))).same).toBe(true);
		expect(heard).toBe(0);
		const ends = Promise.all([socket, second].map((end) => new Promise((resolve) => end.once("close", resolve))));
		relay.reset();
		await ends;
		await until(() => relay.open === 0, "every connection to be gone");
		expect(relay.accepted).toBe(2);
	});
});
