import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { canMakeNamespaces, makeNamespaces } from "../support/net-namespaces.ts";
import { startGatewayPart, startHubPart, startPart } from "../support/part-processes.ts";
import { privateAuthority } from "../support/private-authority.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { doneOf } from "../support/test-swarm.ts";
import { until } from "../support/until.ts";

/** A CONNECT proxy in a few lines, as it has to be a process of its own; it says what it was asked for. */
const proxyProgram = `
const net = require("node:net");
require("node:http").createServer().on("connect", (request, client, head) => {
	console.log("CONNECT", request.url);
	const [host, port] = request.url.split(":");
	const far = net.connect(port, host, () => {
		client.write("HTTP/1.1 200 OK\\r\\n\\r\\n");
		far.write(head);
		client.pipe(far).pipe(client);
	});
	for (const socket of [client, far]) socket.on("error", () => {}).on("close", () => { client.destroy(); far.destroy(); });
}).listen(3128, "10.77.1.2", () => console.log("listening"));
`;

/** Exits 0 when a TCP connection to `host` comes about. */
const reachProgram = (host: string) => `
require("node:net").connect({ host: "${host}", port: 9, timeout: 1000 })
	.on("error", ({ code }) => process.exit(code === "ECONNREFUSED" ? 0 : 1)).on("timeout", () => process.exit(1));
`;

it("worker, proxy, gateway, hub and backbone on hosts of their own, none of which can reach the worker's", async ({
	skip,
}) => {
	if (!canMakeNamespaces()) return skip("network namespaces need root");
	const home = await temporaryHome();
	const net = makeNamespaces(
		["worker", "proxy", "gateway", "hub", "backbone"],
		[
			["worker", "10.77.1.1", "proxy", "10.77.1.2"],
			["proxy", "10.77.2.1", "gateway", "10.77.2.2"],
			["gateway", "10.77.3.1", "hub", "10.77.3.2"],
			["hub", "10.77.4.1", "backbone", "10.77.4.2"],
		],
	);
	const under = (host: string) => ({ under: net.on(host) });
	const [command = "", ...words] = net.on("proxy");
	const proxy = spawn(command, [...words, process.execPath, "-e", proxyProgram]);
	onTestFinished(() => void proxy.kill("SIGKILL"));
	let said = "";
	proxy.stdout.setEncoding("utf8").on("data", (text) => {
		said += text;
	});
	await until(() => said.includes("listening"), "the proxy to listen");

	const reaches = async (from: string, host: string) => {
		const [command = "", ...words] = net.on(from);
		return promisify(execFile)(command, [...words, process.execPath, "-e", reachProgram(host)]).then(
			() => true,
			() => false,
		);
	};
	expect(await reaches("worker", "10.77.1.2")).toBe(true);
	expect(await reaches("worker", "10.77.2.2")).toBe(false);
	expect(await reaches("gateway", "10.77.1.1")).toBe(false);

	const authority = await privateAuthority(home, ["IP:10.77.2.2"]);
	const hub = await startHubPart(home, { relay: "0.0.0.0:7301", api: "0.0.0.0:7302" }, under("hub"));
	expect(hub.relay).toBe("0.0.0.0:7301");
	const tls = ["--tls-cert", authority.certPath, "--tls-key", authority.keyPath];
	const toHub = { relay: "10.77.3.2:7301", api: "10.77.3.2:7302" };
	await startGatewayPart(home, toHub, { listen: "10.77.2.2:443", tls }, under("gateway"));
	const dispatch = ["backbone", "dispatch", "--hub", "10.77.4.1:7301", "--wait", "90", "--require-remote"];
	const prompt = ["--prompt", "The capital of France is", "--tokens", "6"];
	const backbone = await startPart(home, "backbone", [...dispatch, ...prompt], under("backbone"));
	const worker = await startPart(home, "worker", ["join", "wss://10.77.2.2", "--ca", authority.caPath], {
		...under("worker"),
		env: { HTTPS_PROXY: "http://10.77.1.2:3128" },
	});
	const { remote, answers } = await doneOf(backbone, 120_000).catch((cause) => {
		const seen = JSON.stringify(worker.events.all.slice(-6));
		throw new Error(`The worker saw ${seen}; the proxy ${said}`, { cause });
	});
	expect(remote).toMatchObject({ answered: remote.asked, fallback: 0 });
	expect(answers[0]!.text).toMatch(/^ Paris/);
	expect(said).toContain("CONNECT 10.77.2.2:443");
});
