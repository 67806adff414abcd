import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { startConnectProxy } from "../support/connect-proxy.ts";
import { freePort } from "../support/free-port.ts";
import { startGatewayPart, startHubPart, startPart } from "../support/part-processes.ts";
import { privateAuthority } from "../support/private-authority.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { doneOf } from "../support/test-swarm.ts";
import { until } from "../support/until.ts";

const remote = ["--prompt", "The capital of France is", "--tokens", "6", "--wait", "60", "--require-remote"];

/** An address of this machine that is not loopback: what a proxy is for. */
function ownAddress(): string | null {
	const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
	return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? null;
}

function installed(program: string): boolean {
	try {
		execFileSync("which", [program], {
			stdio: "ignore",
			env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
		});
		return true;
	} catch {
		return false;
	}
}

/** A program of the distribution, ended with the test. */
function startProgram(program: string, args: readonly string[]): ChildProcess {
	const child = spawn(program, args, {
		env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
		stdio: "ignore",
	});
	onTestFinished(() => void child.kill("SIGKILL"));
	return child;
}

async function decodeThrough(home: string, hub: { relay: string }, join: () => Promise<unknown>): Promise<string> {
	const backbone = await startPart(home, "backbone", ["backbone", "dispatch", "--hub", hub.relay, ...remote]);
	await backbone.events.waitFor(({ event }) => event === "parked", 20_000);
	await join();
	const { answers, remote: counts } = await doneOf(backbone);
	expect(counts).toMatchObject({ answered: counts.asked, fallback: 0 });
	return answers[0]!.tokens.join();
}

describe("a worker behind a proxy that wants a password", () => {
	it("fetches and serves through CONNECT alone, with the gateway's private authority", async () => {
		const home = await temporaryHome();
		const authority = await privateAuthority(home, ["gate.kvasir.test"]);
		const hub = await startHubPart(home);
		await using proxy = await startConnectProxy({
			credentials: "worker:pass word",
			names: { "gate.kvasir.test": "127.0.0.1" },
		});
		const tls = ["--tls-cert", authority.certPath, "--tls-key", authority.keyPath];
		const port = await freePort();
		const publicHost = `gate.kvasir.test:${port}`;
		await startGatewayPart(home, hub, { listen: `127.0.0.1:${port}`, tls }, { args: ["--public-host", publicHost] });
		const env = { HTTPS_PROXY: `http://worker:pass%20word@127.0.0.1:${proxy.port}`, NO_PROXY: "elsewhere.test" };
		await decodeThrough(home, hub, () =>
			startPart(home, "worker", ["join", `wss://${publicHost}`, "--ca", authority.caPath], { env }),
		);
		expect(new Set(proxy.asked)).toEqual(new Set([publicHost]));
		expect(proxy.asked.length).toBeGreaterThan(2);
		expect(proxy.others).toEqual([]);
	});

	it.each([
		["without the password", "http://127.0.0.1:PORT", "proxy"],
		["without the authority", "http://worker:pw@127.0.0.1:PORT", "tls"],
	])("is told what is wrong: %s", async (_, url, code) => {
		const home = await temporaryHome();
		const authority = await privateAuthority(home, ["gate.kvasir.test"]);
		const hub = await startHubPart(home);
		await using proxy = await startConnectProxy({
			credentials: "worker:pw",
			names: { "gate.kvasir.test": "127.0.0.1" },
		});
		const tls = ["--tls-cert", authority.certPath, "--tls-key", authority.keyPath];
		const { port } = await startGatewayPart(home, hub, { tls }, { args: ["--public-host", "gate.kvasir.test"] });
		const env = { HTTPS_PROXY: url.replace("PORT", String(proxy.port)) };
		const worker = await startPart(home, "worker", ["join", `wss://gate.kvasir.test:${port}`], { env });
		const seen = await worker.events
			.waitFor(({ event }) => event === "disconnected", 20_000)
			.catch((error: { code: string }) => error);
		expect(seen).toMatchObject({ code });
	});

	it("serves through tinyproxy", async ({ skip }) => {
		const address = ownAddress();
		if (!installed("tinyproxy") || address === null) return skip("needs tinyproxy, and an address beside loopback");
		const home = await temporaryHome();
		const hub = await startHubPart(home);
		const [proxyPort, port] = [await freePort(), await freePort()];
		const log = join(home, "tinyproxy.log");
		const config = [
			"Port",
			proxyPort,
			"\nListen 127.0.0.1\nBasicAuth worker secret\nAllow 127.0.0.1\nConnectPort",
			port,
		];
		await writeFile(join(home, "tinyproxy.conf"), `${config.join(" ")}\nLogFile "${log}"\nLogLevel Connect\n`);
		startProgram("tinyproxy", ["-d", "-c", join(home, "tinyproxy.conf")]);
		await startGatewayPart(home, hub, { listen: `${address}:${port}` });
		const env = { HTTP_PROXY: `http://worker:secret@127.0.0.1:${proxyPort}` };
		await decodeThrough(home, hub, () =>
			startPart(home, "worker", ["join", `ws://${address}:${port}`, "--insecure"], { env }),
		);
		await until(
			async () => (await readFile(log, "utf8")).includes(`CONNECT ${address}:${port}`),
			"tinyproxy to log the CONNECT",
		);
	});
});

describe("nginx before a gateway in plain mode", () => {
	it("ends TLS, and links and slices go through it", async ({ skip }) => {
		if (!installed("nginx")) return skip("needs nginx");
		const home = await temporaryHome();
		const authority = await privateAuthority(home, ["localhost", "IP:127.0.0.1"]);
		const hub = await startHubPart(home);
		const [front, port] = [await freePort(), await freePort()];
		const publicHost = `127.0.0.1:${front}`;
		const args = ["--public-host", publicHost, "--trust-proxy", "127.0.0.1/32"];
		await startGatewayPart(home, hub, { listen: `127.0.0.1:${port}` }, { args });
		await writeFile(join(home, "nginx.conf"), nginxConfig(home, front, port, authority));
		startProgram("nginx", ["-c", join(home, "nginx.conf"), "-p", home, "-g", "daemon off;"]);
		await decodeThrough(home, hub, () =>
			startPart(home, "worker", ["join", `wss://${publicHost}`, "--ca", authority.caPath]),
		);
		const log = await readFile(join(home, "access.log"), "utf8");
		expect(log).toContain("GET /v1/slices/");
	});
});

/** What docs/operating.md shows, on free ports. */
function nginxConfig(
	home: string,
	front: number,
	port: number,
	{ certPath, keyPath }: { certPath: string; keyPath: string },
): string {
	return `
user root;
pid ${home}/nginx.pid;
error_log ${home}/error.log;
events {}
http {
	access_log ${home}/access.log;
	client_body_temp_path ${home}/body;
	proxy_temp_path ${home}/proxy;
	fastcgi_temp_path ${home}/fastcgi;
	uwsgi_temp_path ${home}/uwsgi;
	scgi_temp_path ${home}/scgi;
	map $http_upgrade $connection_upgrade { default upgrade; "" close; }
	server {
		listen 127.0.0.1:${front} ssl;
		ssl_certificate ${certPath};
		ssl_certificate_key ${keyPath};
		location / {
			proxy_pass http://127.0.0.1:${port};
			proxy_http_version 1.1;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection $connection_upgrade;
			proxy_set_header Host $http_host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_buffering off;
		}
	}
}
`;
}
