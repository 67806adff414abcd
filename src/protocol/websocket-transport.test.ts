import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { backboneIdentity, linkPair } from "../../test/support/link-pair.ts";
import { bytes, sampleWelcomeBody } from "../../test/support/sample-messages.ts";
import { systemClock } from "../io/clock.ts";
import { systemRandom } from "../io/random.ts";
import { acceptHandshake } from "./handshake.ts";
import { limits } from "./limits.ts";
import type { Transport } from "./link.ts";
import { closeCodes, type Dispatch } from "./messages.ts";
import { webSocketOptions, webSocketTransport } from "./websocket-transport.ts";

const closing: (() => void)[] = [];
afterEach(() => {
	for (const close of closing.splice(0)) close();
});

/** A client and a server socket joined over loopback. */
async function connected() {
	const http = createServer();
	const server = new WebSocketServer({ noServer: true, ...webSocketOptions });
	http.listen(0, "127.0.0.1");
	await once(http, "listening");
	const accepted = new Promise<{ ws: WebSocket; socket: Socket }>((resolve) => {
		http.on("upgrade", (request, socket, head) => {
			server.handleUpgrade(request, socket, head, (ws) => resolve({ ws, socket: socket as Socket }));
		});
	});
	const ws = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`, webSocketOptions);
	const [[response]] = await Promise.all([once(ws, "upgrade"), once(ws, "open")]);
	const far = await accepted;
	closing.push(() => {
		ws.terminate();
		far.ws.terminate();
		http.close();
	});
	return { client: { ws, socket: response.socket as Socket }, server: far };
}

async function transports(): Promise<[Transport, Transport]> {
	const { client, server } = await connected();
	return [webSocketTransport(client.ws, client.socket), webSocketTransport(server.ws, server.socket)];
}

const hidden = 3072;
const welcome = { ...sampleWelcomeBody, model: { ...sampleWelcomeBody.model, hidden } };
const dispatch: Dispatch = {
	kind: "dispatch",
	id: 1,
	layer: 0,
	deadlineMs: 100,
	mode: 0,
	dtype: "f32",
	rowCount: 8,
	rowIndex: new Uint16Array([0, 1, 2, 3, 4, 5, 6, 7]),
	expert: new Uint16Array(8),
	weight: new Float32Array(0),
	rows: bytes(8 * hidden * 4),
};

describe("webSocketTransport()", () => {
	it("cuts what it sends into frames of a given length, and the message arrives whole", async () => {
		const { client, server } = await connected();
		const frames: number[] = [];
		const { send } = client.ws;
		client.ws.send = (...args: unknown[]) => {
			frames.push((args[0] as Uint8Array).length);
			return send.apply(client.ws, args as Parameters<typeof send>);
		};
		const near = webSocketTransport(client.ws, client.socket, 1000);
		const far = webSocketTransport(server.ws, server.socket);
		const arrived = new Promise<Uint8Array>((resolve) => {
			far.onMessage = resolve;
		});
		const message = Uint8Array.from({ length: 4500 }, (_, i) => i);
		near.send([message.subarray(0, 700), message.subarray(700)]);
		expect(Buffer.from(await arrived).equals(message)).toBe(true);
		expect(frames).toEqual([700, 1000, 1000, 1000, 800]);
	});

	it("carries handshake, one-frame and fragmented messages, and the close code", async () => {
		const { worker, backbone } = await linkPair({ clock: systemClock, transports: await transports(), welcome });
		const arrived: Dispatch[] = [];
		const both = new Promise<void>((resolve) => {
			worker.onMessage = (message) => {
				if (arrived.push(message as Dispatch) === 2) resolve();
			};
		});
		backbone.send(dispatch);
		backbone.send({
			...dispatch,
			id: 2,
			rowCount: 1,
			rowIndex: new Uint16Array([0]),
			expert: new Uint16Array(1),
			rows: bytes(hidden * 4),
		});
		await both;
		expect(Buffer.from(arrived[0]!.rows).equals(dispatch.rows)).toBe(true);
		expect(arrived[1]!.id).toBe(2);
		worker.close(closeCodes.takenOver, "taken_over");
		expect(await backbone.ended).toEqual({ code: closeCodes.takenOver, reason: "taken_over" });
		expect(await worker.ended).toEqual({ code: closeCodes.takenOver, reason: "taken_over" });
	});

	it("closes text with 1003", async () => {
		const { client, server } = await connected();
		const transport = webSocketTransport(server.ws, server.socket);
		client.ws.send("hello");
		const [code] = await once(client.ws, "close");
		expect(code).toBe(closeCodes.text);
		expect(await transport.ended).toEqual({ code: closeCodes.text, reason: "text" });
	});

	it("closes with 1009 what is too big: 16 KiB before welcome, 16 MiB and a tag after", async () => {
		for (const bound of [limits.handshakeBytes, limits.messageBytes + limits.tagBytes]) {
			const { client, server } = await connected();
			const transport = webSocketTransport(server.ws, server.socket);
			transport.limitMessages?.(bound);
			const arrived: number[] = [];
			transport.onMessage = (message) => arrived.push(message.length);
			client.ws.on("error", () => {});
			client.ws.send(new Uint8Array(bound));
			client.ws.send(new Uint8Array(bound + 1));
			const [code] = await once(client.ws, "close");
			expect(code).toBe(closeCodes.tooBig);
			expect(await transport.ended).toMatchObject({ code: closeCodes.tooBig });
			expect(arrived).toEqual([bound]);
		}
	});

	it("lowers the bound by itself while the handshake runs", async () => {
		const [near, far] = await transports();
		const accepted = acceptHandshake(far, {
			identity: backboneIdentity,
			welcome: () => welcome,
			clock: systemClock,
			random: systemRandom,
		});
		near.send([new Uint8Array(limits.handshakeBytes + 1)]);
		await expect(accepted).rejects.toMatchObject({ code: "closed", facts: { closeCode: closeCodes.tooBig } });
	});

	it("counts bytes in portions, and reports a torn connection", async () => {
		const { client, server } = await connected();
		const transport = webSocketTransport(server.ws, server.socket);
		const before = transport.bytesRead;
		// The head of a frame of 1,000 bytes, and a few of them: no message, but a sign of life.
		client.socket.write(Buffer.concat([Buffer.from([0x82, 0xfe, 0x03, 0xe8, 0, 0, 0, 0]), bytes(10)]));
		await once(server.socket, "data");
		expect(transport.bytesRead).toBe(before + 18);
		client.socket.destroy();
		expect((await transport.ended).code).toBe(closeCodes.lost);
		transport.send([bytes(3)]);
	});
});
