import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHubApi } from "../../src/backbone/pay/hub-api.ts";
import { creditFromHub } from "../../src/commands/gateway/credit-from-hub.ts";
import { addressOf } from "../../src/io/base58.ts";
import { type Clock, systemClock } from "../../src/io/clock.ts";
import { silentLog } from "../../src/io/log.ts";
import { systemRandom as random } from "../../src/io/random.ts";
import { openGatewayStore } from "../../src/ledger/gateway-store.ts";
import { openHubLedger } from "../../src/ledger/hub-ledger.ts";
import { createNonceCache } from "../../src/protocol/nonce-cache.ts";
import { serverTime } from "../../src/protocol/server-time.ts";
import { walletRoutes } from "../../src/splice/gateway/wallet-routes.ts";
import type { Route } from "../../src/splice/http/route.ts";
import { createRouter } from "../../src/splice/http/router.ts";
import { hubLedgerRoutes } from "../../src/splice/hub/hub-ledger-routes.ts";
import { createRelayMeter } from "../../src/splice/hub/relay-meter.ts";
import { gatewayClient } from "../../src/wallet/gateway-client.ts";
import { keyNamed, receiptChain, submissionOf, testSession } from "../support/receipts.ts";
import { until } from "../support/until.ts";

const dayMs = 86_400_000;
const secret = new Uint8Array(32).fill(3);
const backbone = keyNamed("backbone");

async function serve(routes: readonly Route[]): Promise<number> {
	const closing = new AbortController();
	const server = createServer(
		createRouter(routes, {
			...{ clock: systemClock, log: silentLog, nonces: createNonceCache(systemClock), closing: closing.signal, secret },
			backboneKeys: new Set([addressOf(backbone.publicKey)]),
		}),
	);
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	onTestFinished(() => {
		closing.abort();
		server.closeAllConnections();
		server.close();
	});
	return (server.address() as AddressInfo).port;
}

describe.each([-dayMs, dayMs])("a clock that is wrong by %d ms", (offMs) => {
	const clock: Clock = { ...systemClock, now: () => systemClock.now() + offMs };

	test("costs a backbone no receipt, a gateway no credit, a wallet no answer", async () => {
		const hub = await openHubLedger(":memory:", { clock: systemClock });
		const store = await openGatewayStore(":memory:", { clock });
		const meter = createRelayMeter({ saveRelays: async () => {} }, { clock: systemClock, log: silentLog });
		const hubPort = await serve(hubLedgerRoutes(hub)(meter));
		const api = createHubApi({ identity: backbone, clock, random });
		const s = testSession(hub.ledgerId);
		const facts = { host: "127.0.0.1", apiPort: hubPort, ledgerId: new Uint8Array(Buffer.from(hub.ledgerId, "hex")) };
		for (const [at, receipt] of receiptChain(s, [10, 20], { issuedAtMs: clock.now() }).entries()) {
			expect(await api.postReceipt(facts, submissionOf(s, receipt))).toEqual({ status: "confirmed", entry: at + 1 });
		}
		const hubApi = { host: "127.0.0.1", port: hubPort };
		const crediting = creditFromHub({ hubApi, secret, store, clock, random, log: silentLog });
		const wallet = keyNamed("wallet of worker");
		await until(async () => (await store.cursor()).after === 2, "the credits");
		expect(await store.balance(addressOf(wallet.publicKey))).toMatchObject({ servedBytes: 30n * 3072n * 4n });

		const port = await serve(walletRoutes(store));
		const client = gatewayClient({ gateway: `http://127.0.0.1:${port}`, clock, random });
		const entries: number[] = [];
		for await (const { entry } of client.credits(wallet, 0)) entries.push(entry);
		expect(entries).toEqual([1, 2]);
		await crediting.close();
		await api.close();
		meter.stop();
		await store.close();
		await hub.close();
	});
});

test("serverTime() believes a time that is one, and asks for another try only where it changes something", () => {
	let now = 1_000_000;
	const time = serverTime({ ...systemClock, now: () => now });
	expect(time.learn({})).toBe(false);
	expect(time.learn({ "x-kvasir-time": "soon" })).toBe(false);
	expect(time.clock.now()).toBe(1_000_000);
	expect(time.learn({ "x-kvasir-time": "5000" })).toBe(true);
	expect(time.clock.now()).toBe(5_000_000);
	expect(time.learn({ "x-kvasir-time": "5000" })).toBe(false);
	now += 10_000;
	expect(time.clock.now()).toBe(5_010_000);
});
