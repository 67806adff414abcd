import { type ConnectionOptions, connect } from "node:tls";
import { describe, expect, it } from "vitest";
import { rawExchange, upgradeHead } from "../../../test/support/raw-http.ts";
import { selfSigned } from "../../../test/support/self-signed.ts";
import { dialWorker, nextMessage, startSpliceSwarm, tokenFor } from "../../../test/support/splice-swarm.ts";

describe("a gateway with TLS", () => {
	it("splices, and takes another certificate without dropping links", async () => {
		const old = selfSigned();
		await using swarm = await startSpliceSwarm({ gateway: { certificate: old } });
		const worker = await dialWorker(swarm.host, { scheme: "wss", ca: old.cert });
		const renewed = selfSigned();
		swarm.gateway.useCertificate(renewed);
		const next = await dialWorker(swarm.host, { scheme: "wss", ca: renewed.cert });
		await expect(dialWorker(swarm.host, { scheme: "wss", ca: old.cert })).rejects.toThrow();
		for (const socket of [worker, next]) {
			const sent = Buffer.alloc(1 << 20, 5);
			socket.send(sent);
			expect((await nextMessage(socket)).equals(sent)).toBe(true);
			socket.terminate();
		}
	});

	it("keeps the old certificate when the new one is no certificate", async () => {
		const good = selfSigned();
		await using swarm = await startSpliceSwarm({ gateway: { certificate: good } });
		expect(() => swarm.gateway.useCertificate({ cert: "nonsense", key: good.key })).toThrow(
			expect.objectContaining({ code: "tls" }),
		);
		const worker = await dialWorker(swarm.host, { scheme: "wss", ca: good.cert });
		worker.terminate();
	});

	it("passes the end of a worker's direction on and still carries the backbone's", async () => {
		const certificate = selfSigned();
		const said: string[] = [];
		await using swarm = await startSpliceSwarm({
			gateway: { certificate },
			backbone: {
				onSocket(_, raw) {
					// Below WebSocket: the raw stream, as the splice carries it.
					raw.removeAllListeners("data");
					raw.removeAllListeners("end");
					raw.on("data", (part: Buffer) => said.push(String(part)));
					raw.on("end", () => raw.end("answer after the end"));
				},
			},
		});
		const text = await new Promise<string>((resolve, reject) => {
			const socket = connect({
				...swarm.gateway.address,
				ca: certificate.cert,
				allowHalfOpen: true,
			} as ConnectionOptions);
			let received = "";
			socket.on("error", reject);
			socket.on("data", (part) => {
				received += part;
				if (received.endsWith("\r\n\r\n")) socket.end("last words");
			});
			socket.on("end", () => resolve(received));
			socket.write(upgradeHead(swarm.host, { Authorization: tokenFor(swarm.host) }));
		});
		expect(said.join("")).toBe("last words");
		expect(text.endsWith("answer after the end")).toBe(true);
	});

	it("is not hurt by connections that break off in the handshake", async () => {
		const certificate = selfSigned();
		await using swarm = await startSpliceSwarm({ gateway: { certificate } });
		await rawExchange(swarm.gateway.address, "GET / HTTP/1.1\r\n\r\n");
		await rawExchange(swarm.gateway.address, Buffer.from([0x16, 3, 1, 0, 200, 1]), { ms: 50 });
		const worker = await dialWorker(swarm.host, { scheme: "wss", ca: certificate.cert });
		worker.terminate();
	});
});
