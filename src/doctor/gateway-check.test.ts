import { once } from "node:events";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { startConnectProxy } from "../../test/support/connect-proxy.ts";
import { backboneIdentity, workerIdentity } from "../../test/support/link-pair.ts";
import { privateAuthority } from "../../test/support/private-authority.ts";
import { sampleWelcomeBody } from "../../test/support/sample-messages.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { systemClock } from "../io/clock.ts";
import { openOutbound } from "../io/outbound.ts";
import { systemRandom } from "../io/random.ts";
import { acceptHandshake } from "../protocol/handshake.ts";
import type { Transport } from "../protocol/link.ts";
import { memoryTransportPair } from "../protocol/memory-transport.ts";
import { runChecks } from "./check.ts";
import { gatewayCheck, proxyCheck, tlsCheck } from "./gateway-check.ts";
import { pathCheck } from "./path-check.ts";

const clock = systemClock;
const run = (...checks: Parameters<typeof runChecks>[0]) =>
	runChecks(checks, { clock, signal: new AbortController().signal });

/** A TLS server for `gate.test` that says 426 on its upgrade path, at a date of its own. */
async function startGate(skewMs = 0) {
	const authority = await privateAuthority(await temporaryHome(), ["gate.test"]);
	const server = https.createServer(authority, (_, response) => {
		response.writeHead(426, { date: new Date(Date.now() + skewMs).toUTCString() }).end();
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => void server.close());
	const url = `wss://gate.test:${(server.address() as AddressInfo).port}`;
	const parts = (env: Record<string, string>, authorities = [authority.ca]) => {
		const outbound = openOutbound(new URL(url), { env, authorities });
		onTestFinished(() => outbound.close());
		return { url, outbound, clock };
	};
	return { url, parts };
}

describe("doctor's checks of a gateway", () => {
	it("name the proxy, whose certificate it is, and how far the clocks are apart", async () => {
		const { parts } = await startGate();
		await using proxy = await startConnectProxy({ credentials: "me:pw", names: { "gate.test": "127.0.0.1" } });
		const through = parts({ HTTPS_PROXY: `http://me:pw@127.0.0.1:${proxy.port}` });
		const [named, certified, gate] = await run(proxyCheck(through), tlsCheck(through), gatewayCheck(through));
		expect(named).toMatchObject({ state: "ok", found: expect.stringContaining(`127.0.0.1:${proxy.port} connects us`) });
		expect(named!.found).not.toContain("pw");
		expect(certified).toMatchObject({
			state: "warning",
			found: expect.stringMatching(/TLSv1\.3, gate by Kvasir test CA/),
		});
		expect(gate).toMatchObject({ state: "ok", found: expect.stringMatching(/clocks [01] s apart/) });
	});

	it("say proxy, tls or dns, whichever it is", async () => {
		const { parts } = await startGate();
		await using proxy = await startConnectProxy({ credentials: "me:pw", names: { "gate.test": "127.0.0.1" } });
		const [proxied] = await run(proxyCheck(parts({ HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` })));
		expect(proxied).toMatchObject({ state: "failed", found: expect.stringContaining("wants a user and a password") });
		const untrusting = parts({ HTTPS_PROXY: `http://me:pw@127.0.0.1:${proxy.port}` }, []);
		const [untrusted] = await run(tlsCheck(untrusting));
		expect(untrusted).toMatchObject({ state: "failed", hint: expect.stringContaining("--ca") });
		const [unknown] = await run(gatewayCheck(parts({})));
		expect(unknown).toMatchObject({ state: "failed", found: expect.stringContaining("name cannot be resolved") });
	});

	it("fail on a clock that signatures would be refused for", async () => {
		const { parts } = await startGate(90_000);
		await using proxy = await startConnectProxy({ names: { "gate.test": "127.0.0.1" } });
		const [gate] = await run(gatewayCheck(parts({ HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` })));
		expect(gate).toMatchObject({ state: "failed", hint: expect.stringContaining("clock") });
	});

	it("tell whether an idle link is left open, and after how long it was cut", async () => {
		const transports: Transport[] = [];
		const dial = async () => {
			const [near, far] = memoryTransportPair({ clock });
			transports.push(far);
			acceptHandshake(far, {
				identity: backboneIdentity,
				welcome: () => ({ ...sampleWelcomeBody, limits: none }),
				clock,
				random: systemRandom,
			}).catch(() => {});
			return near;
		};
		const none = { memoryBytes: 0, rowsMax: 1, dispatchesMax: 1, inFlightBytesMax: 1 };
		const parts = { dial, identity: workerIdentity, clock, random: systemRandom };
		const [held] = await run(pathCheck({ ...parts, idleMs: 200 }));
		expect(held).toMatchObject({ state: "ok", found: expect.stringContaining("held 0 s") });
		clock.after(300, () => transports[1]!.terminate());
		const [cut] = await run(pathCheck({ ...parts, idleMs: 20_000 }));
		expect(cut).toMatchObject({ state: "failed", found: expect.stringContaining("cut after 0 s") });
	});
});
