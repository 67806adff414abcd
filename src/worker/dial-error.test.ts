import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import net, { type AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { startConnectProxy } from "../../test/support/connect-proxy.ts";
import { workerIdentity } from "../../test/support/link-pair.ts";
import { privateAuthority } from "../../test/support/private-authority.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import type { KvasirError } from "../errors.ts";
import { systemClock } from "../io/clock.ts";
import { openOutbound } from "../io/outbound.ts";
import { systemRandom } from "../io/random.ts";
import { refusalReasons } from "../splice/refusals.ts";
import { refusalBytes } from "../splice/refuse.ts";
import { webSocketDialer } from "./dialer.ts";
import { joinTarget } from "./join-target.ts";
import { refusalWords } from "./refusal-words.ts";

const parts = { identity: workerIdentity, clock: systemClock, random: systemRandom };

async function listening(server: net.Server): Promise<number> {
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => void server.close());
	return (server.address() as AddressInfo).port;
}

/** The error of one dial, over the way that the environment says. */
async function failureAt(url: string, env: Record<string, string> = {}, authorities?: string[]): Promise<KvasirError> {
	const outbound = openOutbound(new URL(url), { env, ...(authorities && { authorities }) });
	onTestFinished(() => outbound.close());
	return webSocketDialer({ ...parts, url, insecure: true, outbound })({}).then(
		() => {
			throw new Error("connected");
		},
		(error: KvasirError) => error,
	);
}

/** A server that says the same bytes to everybody. */
const saying = (bytes: string) =>
	listening(
		net.createServer((socket) => {
			socket.on("error", () => {});
			socket.once("data", () => socket.end(bytes));
		}),
	);

describe("what a worker is told of a gateway's refusal", () => {
	it("is a sentence for each word that a gateway says, and for no other", () => {
		const hubsOwn = /^(park|parked_full|none_parked|waiting_full|backbone_\w+|closing)$/;
		const told = Object.keys(refusalReasons).filter((word) => !hubsOwn.test(word));
		expect(Object.keys(refusalWords).sort()).toEqual(told.sort());
	});

	it.each([
		["hub_dial", "refused", "does not reach its hub"],
		["hub_timeout", "refused", "does not reach its hub"],
		["hub_refused", "refused", "do not believe each other"],
		["no_backbone", "refused", "no backbone is ready there"],
		["model_needed", "usage", "several models"],
		["draining", "refused", "restarting"],
		["signature", "auth", "another host"],
		["invite_missing", "not_admitted", "with an invite"],
		["banned", "not_admitted", "banned"],
		["upgrade", "proxy", "without its WebSocket upgrade"],
		["subprotocol", "version", "another version"],
		["admit_rate", "refused", "too many"],
	] as const)("%s: %s, ...%s...", async (reason, code, state) => {
		const port = await saying(refusalBytes({ reason, retryAfterSeconds: 3 }));
		const error = await failureAt(`ws://127.0.0.1:${port}`);
		expect(error).toMatchObject({ code, facts: { reason, retryAfterMs: 3_000 } });
		expect(error.message).toContain(state);
		expect(error.message).toContain(reason);
		expect(error.hint).toBeTruthy();
	});
});

describe("what a worker is told of somebody else's answer", () => {
	const page = "<html>Welcome to the hotel</html>";
	const answer = (head: string, body = page) =>
		saying(`HTTP/1.1 ${head}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);

	it.each([
		["200 OK", "network", "a web server answers", "sign-in"],
		["302 Found\r\nLocation: http://portal.test/login", "network", "redirects to http://portal.test/login", "sign-in"],
		["403 Forbidden", "network", "in front of the gateway", "filter"],
		["404 Not Found", "network", "no Kvasir gateway", "URL"],
		["502 Bad Gateway", "refused", "in front of the gateway does not reach it", "behind the proxy"],
		["503 Service Unavailable", "refused", "in front of the gateway does not reach it", "behind the proxy"],
		["426 Upgrade Required", "version", "another version", "Update"],
	])("%s: %s", async (head, code, state, hint) => {
		const error = await failureAt(`ws://127.0.0.1:${await answer(head)}`);
		expect(error).toMatchObject({ code, message: expect.stringContaining(state), hint: expect.stringContaining(hint) });
		expect(error.facts.reason).toBeUndefined();
	});

	it.each([
		["is no gateway's word", JSON.stringify({ error: { code: "constructor" } })],
		["never ends", "x".repeat(100_000)],
	])("even where its body %s", async (_, body) => {
		expect(await failureAt(`ws://127.0.0.1:${await answer("503 No", body)}`)).toMatchObject({ code: "refused" });
	});

	it("no HTTP, a cut, an upgrade to something else", async () => {
		expect(await failureAt(`ws://127.0.0.1:${await saying("220 mail ready\r\n")}`)).toMatchObject({
			code: "network",
			message: expect.stringContaining("no HTTP"),
		});
		expect(await failureAt(`ws://127.0.0.1:${await saying("")}`)).toMatchObject({
			code: "closed",
			hint: expect.stringContaining("cut"),
		});
		const switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
		expect(await failureAt(`ws://127.0.0.1:${await saying(switched)}`)).toMatchObject({
			code: "network",
			message: expect.stringContaining("no gateway's"),
		});
	});
});

describe("what a worker is told of TLS", () => {
	it("another name, an unknown authority, no TLS at all", async () => {
		const authority = await privateAuthority(await temporaryHome(), ["other.test"]);
		const server = https.createServer(authority, (_, response) => response.end());
		const port = await listening(server);
		await using proxy = await startConnectProxy({ names: { "gate.test": "127.0.0.1", "other.test": "127.0.0.1" } });
		const env = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
		const named = await failureAt(`wss://gate.test:${port}`, env, [authority.ca]);
		expect(named).toMatchObject({ code: "tls", message: expect.stringContaining("another name") });
		expect(named.message).toContain("other.test");
		expect(await failureAt(`wss://other.test:${port}`, env, [])).toMatchObject({
			code: "tls",
			hint: expect.stringContaining("--ca"),
		});
		const plain = await listening(http.createServer());
		expect(await failureAt(`wss://127.0.0.1:${plain}`)).toMatchObject({
			code: "tls",
			hint: expect.stringContaining("speak TLS"),
		});
	});
});

describe("what a worker is told of its proxy", () => {
	it.each([
		[407, "user and a password"],
		[403, "does not allow"],
		[503, "could not connect"],
	])("that answers %i: ...%s...", async (status, state) => {
		await using proxy = await startConnectProxy({ status });
		const error = await failureAt("wss://gate.test", { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` });
		expect(error).toMatchObject({ code: "proxy", message: expect.stringContaining(state), facts: { status } });
	});

	it.each([
		["whose name nobody knows", "http://no-such-proxy.invalid:3128", "name cannot be resolved"],
		["that is not there", "http://127.0.0.1:1", "nobody listens"],
	])("%s", async (_, proxy, state) => {
		const error = await failureAt("wss://gate.test", { HTTPS_PROXY: proxy });
		expect(error).toMatchObject({ code: "proxy", message: expect.stringContaining(state) });
		expect(error.message).toContain(new URL(proxy).host);
		expect(error.hint).toContain("HTTPS_PROXY");
	});

	it("the gateway behind it is not blamed on the proxy once it let us through", async () => {
		await using proxy = await startConnectProxy({ names: { "gate.test": "127.0.0.1" } });
		const plain = await listening(http.createServer());
		const env = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
		expect(await failureAt(`wss://gate.test:${plain}`, env)).toMatchObject({ code: "tls" });
	});
});

describe("joinTarget()", () => {
	it.each([
		["gate.example", "wss://gate.example"],
		["gate.example:8443", "wss://gate.example:8443"],
		["https://gate.example/", "wss://gate.example"],
		["http://gate.example:80/x", "wss://gate.example:80"],
		["wss://gate.example/v1/relay", "wss://gate.example;"],
		["wss://gate.example?model=tiny", "wss://gate.example;"],
		["wss://me:secret@gate.example", "wss://gate.example;"],
		["//", "wss://gate.example"],
	])("refuses %s with what was meant", (text, meant) => {
		let error: KvasirError | null = null;
		try {
			joinTarget(text);
		} catch (thrown) {
			error = thrown as KvasirError;
		}
		expect(error).toMatchObject({ code: "usage", hint: expect.stringContaining(meant) });
		expect(error!.message).not.toContain("secret");
	});
});
