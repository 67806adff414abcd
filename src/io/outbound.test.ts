import { once } from "node:events";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { request } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { startConnectProxy } from "../../test/support/connect-proxy.ts";
import { privateAuthority } from "../../test/support/private-authority.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { readAuthorities } from "./authorities.ts";
import { openOutbound } from "./outbound.ts";

/** A TLS server for `gate.test` that answers HTTP and WebSocket; only the proxy knows where it is. */
async function scene(hosts = ["gate.test"]) {
	const authority = await privateAuthority(await temporaryHome(), hosts);
	const server = https.createServer(authority, (_, response) => response.end("answer"));
	const sockets = new WebSocketServer({ server });
	sockets.on("connection", (socket) => socket.on("message", (text) => socket.send(text)));
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => {
		for (const socket of sockets.clients) socket.terminate();
		server.closeAllConnections();
		server.close();
	});
	return { authority, port: (server.address() as AddressInfo).port };
}

function open(url: URL, env: Record<string, string>, authorities: readonly string[]) {
	const outbound = openOutbound(url, { env, authorities });
	onTestFinished(() => outbound.close());
	return outbound;
}

function echo(url: URL, outbound: ReturnType<typeof openOutbound>): Promise<string> {
	return new Promise((resolve, reject) => {
		let refused = 0;
		const agent = outbound.agent((status) => {
			if (status !== 200) refused = status;
		});
		const socket = new WebSocket(url, [], {
			...(agent && { agent }),
			...outbound.tls,
		});
		socket.once("open", () => socket.send("hello"));
		socket.once("message", (text) => {
			resolve(String(text));
			socket.terminate();
		});
		socket.on("error", (error) => reject(refused === 0 ? error : new Error(`refused ${refused}`)));
	});
}

describe("openOutbound()", () => {
	it("takes WebSocket and HTTP through the same authenticated proxy, which sees CONNECT and nothing else", async () => {
		const { authority, port } = await scene();
		await using proxy = await startConnectProxy({ credentials: "me:p@ss", names: { "gate.test": "127.0.0.1" } });
		const url = new URL(`wss://gate.test:${port}`);
		const env = { HTTPS_PROXY: `http://me:p%40ss@127.0.0.1:${proxy.port}` };
		const outbound = open(url, env, [authority.ca]);
		expect(outbound.proxy).toBe(`127.0.0.1:${proxy.port}`);
		expect(await echo(url, outbound)).toBe("hello");
		const { body } = await request(`https://gate.test:${port}/x`, { dispatcher: outbound.dispatcher });
		expect(await body.text()).toBe("answer");
		expect(proxy.asked).toEqual([`gate.test:${port}`, `gate.test:${port}`]);
		expect(proxy.others).toEqual([]);
	});

	it("compares the certificate with the address of a gateway that has no name", async () => {
		const { authority, port } = await scene(["IP:10.9.8.7"]);
		await using proxy = await startConnectProxy({ names: { "10.9.8.7": "127.0.0.1", "10.9.8.6": "127.0.0.1" } });
		const env = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
		const url = new URL(`wss://10.9.8.7:${port}`);
		const outbound = open(url, env, [authority.ca]);
		expect(await echo(url, outbound)).toBe("hello");
		const { body } = await request(`https://10.9.8.7:${port}`, { dispatcher: outbound.dispatcher });
		expect(await body.text()).toBe("answer");
		const other = new URL(`wss://10.9.8.6:${port}`);
		await expect(echo(other, open(other, env, [authority.ca]))).rejects.toThrow(/does not match certificate/);
	});

	it("says the status of a proxy that refuses, and never sends it the request", async () => {
		const { authority, port } = await scene();
		await using proxy = await startConnectProxy({ credentials: "me:secret", names: { "gate.test": "127.0.0.1" } });
		const url = new URL(`wss://gate.test:${port}`);
		const outbound = open(url, { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` }, [authority.ca]);
		await expect(echo(url, outbound)).rejects.toThrow("refused 407");
		await expect(request(`https://gate.test:${port}`, { dispatcher: outbound.dispatcher })).rejects.toThrow(/407/);
		expect(proxy.others).toEqual([]);
	});

	it("goes past the proxy where NO_PROXY says so", async () => {
		const { authority, port } = await scene();
		await using proxy = await startConnectProxy();
		const url = new URL(`wss://gate.test:${port}`);
		const env = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`, NO_PROXY: "gate.test" };
		const outbound = open(url, env, [authority.ca]);
		expect(outbound.proxy).toBeNull();
		await expect(echo(url, outbound)).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/);
		expect(proxy.asked).toEqual([]);
	});

	it("does not trust an authority that nobody named, and does once it is named, beside the others", async () => {
		const { authority, port } = await scene();
		await using proxy = await startConnectProxy({ names: { "gate.test": "127.0.0.1" } });
		const url = new URL(`wss://gate.test:${port}`);
		const env = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
		await expect(echo(url, open(url, env, await readAuthorities({ env: {} })))).rejects.toThrow(/certificate/);
		const named = await readAuthorities({ env: {}, file: authority.caPath });
		expect(named.length).toBeGreaterThan(100);
		expect(await echo(url, open(url, env, named))).toBe("hello");
		const bundle = await readAuthorities({ env: { SSL_CERT_FILE: authority.caPath } });
		expect(await echo(url, open(url, env, bundle))).toBe("hello");
	});
});

describe("readAuthorities()", () => {
	it("refuses a named file that is missing or no certificate", async () => {
		const { keyPath } = await privateAuthority(await temporaryHome(), ["x"]);
		await expect(readAuthorities({ env: {}, file: `${keyPath}.none` })).rejects.toMatchObject({ code: "file_missing" });
		await expect(readAuthorities({ env: {}, file: keyPath })).rejects.toMatchObject({ code: "bad_file" });
	});
});
