import { type AddressInfo, createServer } from "node:net";
import { expect, it } from "vitest";
import { freePort } from "../../../test/support/free-port.ts";
import { startParkedBackbone } from "../../../test/support/parked-backbone.ts";
import {
	anyPort,
	dialWorker,
	eventually,
	hubSecret,
	model,
	realParts,
	relayRows,
	testKey,
} from "../../../test/support/splice-swarm.ts";
import { addressOf } from "../../io/base58.ts";
import { type Clock, systemClock } from "../../io/clock.ts";
import { silentLog } from "../../io/log.ts";
import { systemRandom } from "../../io/random.ts";
import type { upgradeError } from "../../worker/dial-error.ts";
import { webSocketDialer } from "../../worker/dialer.ts";
import { startHub } from "../hub/hub.ts";
import { spliceLimits } from "../limits.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { createHubWatch, type HubState } from "./hub-watch.ts";

const hubAt = (port: number) =>
	startHub(
		{
			relay: { host: "127.0.0.1", port },
			api: anyPort,
			secret: hubSecret,
			backboneKeys: [addressOf(testKey(200).publicKey)],
			ledgerId: "test-ledger",
		},
		{ ...realParts, relays: relayRows() },
	);

async function gatewayFor(port: number, secret = hubSecret) {
	const said: string[] = [];
	const say = (facts: object, message: string) => void said.push(`${message} ${JSON.stringify(facts)}`);
	const gateway = await startGateway(
		{
			listen: anyPort,
			admin: anyPort,
			certificate: null,
			publicHosts: [],
			hub: { host: "127.0.0.1", port },
			hubSecret: secret,
		},
		{ ...realParts, log: { ...silentLog, info: say, warn: say } },
	);
	return { gateway, said };
}

const ask = async ({ admin }: Gateway, path: string) => (await fetch(`http://127.0.0.1:${admin.port}${path}`)).text();
const hubOf = async (gateway: Gateway) => (JSON.parse(await ask(gateway, "/status")) as { hub: HubState }).hub;

/** What a worker's dial ends with. */
const refusalOf = ({ address }: Gateway) =>
	webSocketDialer({
		url: `ws://127.0.0.1:${address.port}`,
		identity: testKey(1),
		model,
		clock: systemClock,
		random: systemRandom,
	})({}).then(
		() => null,
		(error: ReturnType<typeof upgradeError>) => error,
	);

it("the gateway, its metrics, its log and its workers tell a hub out of reach from one that has nobody", async () => {
	const port = await freePort();
	const { gateway, said } = await gatewayFor(port);
	await eventually("the gateway looked at its hub", async () => (await hubOf(gateway)).reached !== null);
	expect(await hubOf(gateway)).toMatchObject({ reached: false, reason: "hub_dial" });
	expect(await ask(gateway, "/metrics")).toContain("kvasir_gateway_hub_reached 0");
	const away = await refusalOf(gateway);
	expect(away).toMatchObject({ code: "refused", facts: { status: 503, reason: "hub_dial" } });
	expect(away!.message).toContain("does not reach its hub");

	const hub = await hubAt(port);
	const nobody = await refusalOf(gateway);
	expect(nobody).toMatchObject({ code: "refused", facts: { status: 503, reason: "no_backbone" } });
	expect(nobody!.message).toContain("no backbone is ready there");
	expect(await hubOf(gateway)).toMatchObject({ reached: true, reason: "no_backbone" });
	expect(await ask(gateway, "/metrics")).toContain("kvasir_gateway_hub_reached 1");

	const backbone = await startParkedBackbone({ hub: hub.relay, identity: testKey(200), model });
	const worker = await dialWorker(`127.0.0.1:${gateway.address.port}`);
	expect(await hubOf(gateway)).toMatchObject({ reached: true, reason: null });
	worker.terminate();
	const changes = said.filter((line) => line.startsWith("the hub is"));
	expect(changes.map((line) => line.split(" {")[0])).toEqual([
		"the hub is not reached: no worker can be tied",
		"the hub is reached, but no worker can be tied",
		"the hub is reached, and workers can be tied",
	]);
	expect(changes[0]).toContain(`127.0.0.1:${port}`);
	await gateway.close();
	await backbone.close();
	await hub.close();
});

it("a hub that does not believe the gateway is another matter than one out of reach, and an open port does not clear it", async () => {
	const hub = await hubAt(0);
	const { gateway, said } = await gatewayFor(hub.relay.port, new Uint8Array(32).fill(1));
	await eventually("the gateway looked at its hub", async () => (await hubOf(gateway)).reached === true);
	const refused = await refusalOf(gateway);
	expect(refused).toMatchObject({ facts: { status: 502, reason: "hub_refused" } });
	expect(refused!.hint).toContain("--hub-secret-file");
	expect(await hubOf(gateway)).toMatchObject({ reached: true, reason: "hub_refused" });
	expect(said.filter((line) => line.startsWith("the hub is")).at(-1)).toMatch(/no worker can be tied .*"hub_refused"/);
	await gateway.close();
	await hub.close();
});

it("a look that finds the port open clears what an open port speaks against, and nothing that the hub said or garbled", async () => {
	let looks = 0;
	const server = createServer((socket) => {
		looks++;
		socket.on("error", () => {}).destroy();
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as AddressInfo;
	const clock: Clock = {
		...systemClock,
		after: (ms, fn) => systemClock.after(ms === spliceLimits.hubLookMs ? 10 : ms, fn),
	};
	const watch = createHubWatch({ host: "127.0.0.1", port }, { clock, log: silentLog });
	const stop = watch.look();
	await eventually("the first look", () => watch.state.reached === true);
	for (const reason of ["hub_closed", "hub_timeout"] as const) {
		watch.answered(reason);
		expect(watch.state).toMatchObject({ reached: false, reason });
		await eventually(`a look after ${reason}`, () => watch.state.reached === true);
		expect(watch.state.reason).toBeNull();
	}
	for (const [reason, reached] of [
		["hub_refused", true],
		["hub_malformed", false],
	] as const) {
		watch.answered(reason);
		// One look may have been under way already, and of the last one only the beginning is known.
		const enough = looks + 3;
		await eventually(`looks after ${reason}`, () => looks >= enough);
		expect(watch.state).toMatchObject({ reached, reason });
	}
	stop();
	await new Promise((resolve) => server.close(resolve));
});
