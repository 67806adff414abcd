import net, { type AddressInfo, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type FakeClock, fakeClock } from "../../test/support/fake-clock.ts";
import { eventually } from "../../test/support/splice-swarm.ts";
import { dial, request } from "./outgoing.ts";

const never = new AbortController().signal;
const servers: net.Server[] = [];
afterEach(() => {
	for (const server of servers.splice(0)) server.close();
});

/** A neighbour that answers a request head with `answer`, or not at all (null). */
async function neighbour(answer: string | null, then?: (socket: Socket) => void) {
	const sockets: Socket[] = [];
	const server = net.createServer((socket) => {
		sockets.push(socket);
		socket.on("error", () => {});
		socket.once("data", () => {
			if (answer !== null) socket.write(answer);
			then?.(socket);
		});
	});
	servers.push(server);
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return { address: { host: "127.0.0.1", port: (server.address() as AddressInfo).port }, sockets };
}

async function ask(address: { host: string; port: number }, clock: FakeClock = fakeClock(), signal = never) {
	const socket = await dial(address, { clock, signal });
	const headers = [
		["Host", "x"],
		["Connection", "Upgrade"],
		["Upgrade", "websocket"],
	] as const;
	return {
		socket: socket!,
		answer: request(socket!, { target: "/v1/relay", headers }, { clock, answerMs: 5_000, signal }),
	};
}

describe("request()", () => {
	it.each([
		["what is not HTTP", "SSH-2.0-OpenSSH_9.7\r\n", "malformed"],
		["a head above 8 KiB", `HTTP/1.1 101 Switching Protocols\r\nX-Long: ${"a".repeat(9_000)}\r\n\r\n`, "malformed"],
		["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", "malformed"],
	])("fails on %s and destroys the socket", async (_, text, reason) => {
		const { address } = await neighbour(text);
		const { socket, answer } = await ask(address);
		expect(await answer).toEqual({ kind: "failed", reason });
		expect(socket.destroyed).toBe(true);
	});

	it("fails when the neighbour closes, resets, or says nothing for too long", async () => {
		const closing = await ask((await neighbour(null, (socket) => socket.end())).address);
		expect(await closing.answer).toEqual({ kind: "failed", reason: "closed" });
		const resetting = await ask((await neighbour(null, (socket) => socket.resetAndDestroy())).address);
		expect(await resetting.answer).toEqual({ kind: "failed", reason: "closed" });
		const clock = fakeClock();
		const silent = await ask((await neighbour(null)).address, clock);
		await clock.advance(5_000);
		expect(await silent.answer).toEqual({ kind: "failed", reason: "timeout" });
		expect([silent.socket.destroyed, clock.pending]).toEqual([true, 0]);
	});

	it("hands over bytes that came behind a 101, and leaves no timer", async () => {
		const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
		const clock = fakeClock();
		const { answer } = await ask((await neighbour(`${head}first`)).address, clock);
		const switched = await answer;
		if (switched.kind !== "switched") throw new Error(switched.kind);
		expect(String(switched.rest)).toBe("first");
		expect(clock.pending).toBe(0);
		switched.socket.destroy();
	});

	it("gives up when its peer is gone", async () => {
		const gone = new AbortController();
		const { socket, answer } = await ask((await neighbour(null)).address, fakeClock(), gone.signal);
		gone.abort();
		expect(await answer).toEqual({ kind: "failed", reason: "closed" });
		expect(socket.destroyed).toBe(true);
	});
});

describe("dial()", () => {
	it("says null for a closed port and for an aborted signal, and leaves no timer", async () => {
		const clock = fakeClock();
		expect(await dial({ host: "127.0.0.1", port: 1 }, { clock, signal: never })).toBeNull();
		expect(await dial({ host: "127.0.0.1", port: 1 }, { clock, signal: AbortSignal.abort() })).toBeNull();
		await eventually("no timer is left", () => clock.pending === 0);
	});
});
