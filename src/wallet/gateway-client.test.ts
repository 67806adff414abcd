import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { keyNamed } from "../../test/support/receipts.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { addressOf } from "../io/base58.ts";
import { systemClock } from "../io/clock.ts";
import { silentLog } from "../io/log.ts";
import { systemRandom } from "../io/random.ts";
import { type EntryPage, entryHash, genesisHash } from "../ledger/entry.ts";
import { openGatewayStore } from "../ledger/gateway-store.ts";
import { createNonceCache } from "../protocol/nonce-cache.ts";
import { walletRoutes } from "../splice/gateway/wallet-routes.ts";
import { createRouter } from "../splice/http/router.ts";
import { readBalance } from "./balance.ts";
import { gatewayClient, originOf } from "./gateway-client.ts";
import { type LocalReceipt, openLocalReceipts } from "./local-receipts.ts";
import { rememberedGateway, rememberGateway } from "./remembered-gateway.ts";

const parts = { clock: systemClock, random: systemRandom };
const ann = keyNamed("ann");
const annAddress = addressOf(ann.publicKey);
const bytes = 1_277_952n;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
	for (const close of closing.splice(0).reverse()) await close();
});

/** A page that credits ann `count` times the reference example. */
function pageFor(count: number): EntryPage {
	let hash = genesisHash;
	const entries = Array.from({ length: count }, (_, i) => {
		const entry = {
			number: i + 1,
			kind: "receipt" as const,
			receipt: (i + 1).toString(16).padStart(64, "0"),
			backbone: addressOf(keyNamed("backbone").publicKey),
			worker: addressOf(keyNamed("worker").publicKey),
			payout: annAddress,
			session: "ab".repeat(16),
			receiptNumber: i + 1,
			pairs: 104n,
			servedBytes: bytes,
			paidBytes: bytes,
			policy: 1,
			rate: 7_000_000n,
			status: "confirmed" as const,
			reason: null,
			unpaid: {},
			atMs: 1_700_000_000_000 + i,
		};
		hash = entryHash(hash, entry);
		return { ...entry, hash };
	});
	return { ledgerId: "0123456789abcdef0123456789abcdef", head: count + 3, entries };
}

/** A real gateway's wallet API over a real store. */
async function gatewayWith(count: number): Promise<string> {
	const store = await openGatewayStore(":memory:", { clock: systemClock });
	if (count > 0) await store.credit(pageFor(count));
	const router = createRouter(walletRoutes(store), {
		clock: systemClock,
		log: silentLog,
		nonces: createNonceCache(systemClock),
		closing: new AbortController().signal,
	});
	return listening(createServer(router), () => store.close());
}

async function listening(server: Server, close: () => Promise<void> = async () => {}): Promise<string> {
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	closing.push(async () => {
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
		await close();
	});
	return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
	const list: T[] = [];
	for await (const item of items) list.push(item);
	return list;
}

describe("readBalance()", () => {
	it("shows what the gateway has credited, in the shape of `wallet balance`", async () => {
		const gateway = await gatewayWith(1);
		const home = await temporaryHome();
		const view = await readBalance({ home, address: annAddress, client: gatewayClient({ ...parts, gateway }) });
		expect(view).toEqual({
			address: annAddress,
			pending: "0.008945664",
			claimed: "0",
			paid: "0",
			units: "1.277952",
			nano: { pending: "8945664", claimed: "0", paid: "0" },
			lastReceipt: {
				receipt: "1".padStart(64, "0"),
				number: 1,
				status: "confirmed",
				nano: "8945664",
				atMs: 1_700_000_000_000,
			},
			cursorLag: 3,
			source: "gateway",
		});
	});

	it("asks the gateway that join remembered, and adds up local receipts without one", async () => {
		const home = await temporaryHome();
		const log = await openLocalReceipts(home);
		const receipt: LocalReceipt = {
			receipt: "a1",
			backbone: "backbone",
			worker: "worker",
			payout: annAddress,
			session: "ab",
			number: 1,
			pairs: 104n,
			servedBytes: bytes,
			rate: 7_000_000n,
			countersigned: true,
			atMs: 5,
		};
		await Promise.all([
			log.append(receipt),
			log.append(receipt),
			log.append({ ...receipt, receipt: "b2", payout: "another" }),
		]);
		await log.close();
		const local = await readBalance({ home, address: annAddress, client: null });
		expect(local).toMatchObject({
			pending: "0.008945664",
			units: "1.277952",
			source: "local",
			cursorLag: null,
			lastReceipt: { receipt: "a1", status: "countersigned" },
		});
		await rememberGateway(home, `${(await gatewayWith(2)).replace("http:", "ws:")}/v1/relay#pin`);
		const client = gatewayClient({ ...parts, gateway: (await rememberedGateway(home))! });
		expect(await readBalance({ home, address: annAddress, client })).toMatchObject({
			pending: "0.017891328",
			source: "gateway",
		});
	});

	it("knows an empty home", async () => {
		const home = await temporaryHome();
		expect(await readBalance({ home, address: annAddress, client: null })).toMatchObject({
			pending: "0",
			units: "0",
			lastReceipt: null,
			source: "local",
		});
	});
});

describe("gatewayClient()", () => {
	it("reads history and payouts with the wallet's signature alone, page after page", async () => {
		const gateway = await gatewayWith(600);
		const client = gatewayClient({ ...parts, gateway });
		const credits = await all(client.credits(ann, 0));
		expect(credits.map((line) => line.entry)).toEqual(Array.from({ length: 600 }, (_, i) => i + 1));
		expect(await all(client.credits(ann, 598))).toHaveLength(2);
		expect(await client.payouts(ann)).toEqual([]);
		expect(await all(client.credits(keyNamed("bob"), 0))).toEqual([]);
	});

	it("claims all that is pending, then nothing more", async () => {
		const client = gatewayClient({ ...parts, gateway: await gatewayWith(1) });
		const address = addressOf(keyNamed("exchange").publicKey);
		expect(await client.claim(ann, { nano: 945_664n, address })).toMatchObject({
			state: "claimed",
			number: 1,
			nano: 945_664n,
			address,
		});
		expect(await client.claim(ann, { nano: null, address })).toMatchObject({ number: 2, nano: 8_000_000n });
		await expect(client.claim(ann, { nano: null, address })).rejects.toMatchObject({ code: "payment" });
		await expect(client.claim(ann, { nano: 1n, address })).rejects.toMatchObject({ code: "payment" });
		expect((await client.payouts(ann)).map((payout) => payout.number)).toEqual([2, 1]);
		expect(await client.balance(annAddress)).toMatchObject({ pending: 0n, claimed: 8_945_664n, claims: 2 });
	});

	it("says network for a gateway that is away, or answers something else", async () => {
		const away = await listening(createServer());
		for (const close of closing.splice(0)) await close();
		const odd = await listening(createServer((_, response) => response.end("<html>a captive portal</html>")));
		const huge = await listening(createServer((_, response) => response.end(Buffer.alloc(5 * 2 ** 20))));
		const broken = await listening(createServer((_, response) => void response.writeHead(502).end("bad gateway")));
		for (const gateway of [away, odd, broken]) {
			await expect(gatewayClient({ ...parts, gateway }).balance(annAddress)).rejects.toMatchObject({ code: "network" });
		}
		await expect(gatewayClient({ ...parts, gateway: huge }).balance(annAddress)).rejects.toMatchObject({
			code: "bounds",
		});
	});

	it("ends when the signal aborts", async () => {
		const gateway = await listening(createServer(() => {}));
		const stop = new AbortController();
		const asking = gatewayClient({ ...parts, gateway }).balance(annAddress, stop.signal);
		stop.abort(new Error("enough"));
		await expect(asking).rejects.toThrow("enough");
	});
});

it.each([
	["wss://gate.example/v1/relay#key", "https://gate.example"],
	["ws://127.0.0.1:7301", "http://127.0.0.1:7301"],
	["https://gate.example:8443/", "https://gate.example:8443"],
])("originOf(%s) is %s", (gateway, origin) => {
	expect(originOf(gateway)).toBe(origin);
});

it.each(["gate.example", "ftp://gate.example", ""])("originOf() refuses %j", (gateway) => {
	expect(() => originOf(gateway)).toThrow(expect.objectContaining({ code: "usage" }));
});
