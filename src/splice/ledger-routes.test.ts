import { describe, expect, it } from "vitest";
import { keyNamed, receiptChain, submissionOf, testSession } from "../../test/support/receipts.ts";
import {
	dialWorker,
	hubSecret,
	nextMessage,
	realParts,
	startSpliceSwarm,
	testKey,
} from "../../test/support/splice-swarm.ts";
import { addressOf } from "../io/base58.ts";
import type { KeyPair } from "../io/crypto.ts";
import { genesisHash, parsePage } from "../ledger/entry.ts";
import { openGatewayStore } from "../ledger/gateway-store.ts";
import type { HubLedger } from "../ledger/hub-ledger.ts";
import { openHubStore } from "../ledger/hub-store.ts";
import { parseVerdict, type ReceiptSubmission, submissionJson } from "../ledger/submission.ts";
import { claimText } from "../protocol/claim-text.ts";
import { type RequestSigner, signRequest } from "../protocol/request-authorization.ts";
import { walletRoutes } from "./gateway/wallet-routes.ts";
import { startHub } from "./hub/hub.ts";
import { hubLedgerRoutes, relayStore } from "./hub/hub-ledger-routes.ts";

const { clock, random } = realParts;
const backboneKey = testKey(200);

/** A hub's ledger in this thread, with the thread's long poll. */
async function openLedger(): Promise<HubLedger> {
	const wakes = new Set<() => void>();
	const store = await openHubStore(":memory:", { clock, random, onHead: () => wakes.forEach((wake) => void wake()) });
	return {
		...store,
		waitForEntries(after, waitMs) {
			return new Promise((resolve) => {
				const cancel = clock.after(waitMs, resolve);
				const look = async () => {
					const page = await store.entriesAfter(after, genesisHash, 1);
					if ("diverged" in page || page.entries.length === 0) return;
					cancel();
					resolve();
				};
				wakes.add(() => void look());
				void look();
			});
		},
	};
}

async function startLedgerSwarm() {
	const ledger = await openLedger();
	const wallets = await openGatewayStore(":memory:", { clock });
	const swarm = await startSpliceSwarm({
		hub: { ledgerId: ledger.ledgerId, routes: hubLedgerRoutes(ledger) },
		relays: relayStore(ledger),
		gateway: { routes: walletRoutes(wallets) },
	});
	const api = `http://127.0.0.1:${swarm.hub.api.port}`;
	const call = async (origin: string, path: string, signer: RequestSigner | null, body?: unknown) => {
		const method = body === undefined ? "GET" : "POST";
		const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
		const request = { method, path, ...(bytes === undefined ? {} : { body: bytes }) };
		const authorization = signer === null ? undefined : signRequest(request, signer, { clock, random });
		const response = await fetch(origin + path, {
			method,
			...(bytes === undefined ? {} : { body: bytes }),
			headers: authorization === undefined ? {} : { authorization },
		});
		return { status: response.status, json: (await response.json()) as Record<string, unknown> };
	};
	const post = (submission: ReceiptSubmission, identity: KeyPair = backboneKey) =>
		call(api, "/receipts", { identity }, submissionJson(submission));
	const entries = (query: string, signer: RequestSigner | null = { secret: hubSecret }) =>
		call(api, `/ledger/entries?${query}`, signer);
	return {
		swarm,
		ledger,
		wallets,
		post,
		entries,
		wallet: (path: string, signer: RequestSigner | null, body?: unknown) =>
			call(`http://${swarm.host}`, `/v1/wallet/${path}`, signer, body),
		async [Symbol.asyncDispose]() {
			await swarm[Symbol.asyncDispose]();
			await Promise.all([ledger.close(), wallets.close()]);
		},
	};
}

const session = (ledgerId: string, relay = "") => ({
	...testSession(ledgerId, { relay }),
	backbone: backboneKey,
	worker: testKey(1),
});

describe("the hub's ledger routes", () => {
	it("take a listed backbone's receipt and give it to the gateway alone", async () => {
		await using test = await startLedgerSwarm();
		const s = session(test.ledger.ledgerId);
		const [receipt] = receiptChain(s, [104]);
		const posted = await test.post(submissionOf(s, receipt!));
		expect(posted.status).toBe(200);
		expect(parseVerdict(posted.json)).toMatchObject({ status: "confirmed", entry: 1 });
		const page = parsePage((await test.entries(`after=0&hash=${genesisHash}`)).json);
		expect(page.entries).toMatchObject([{ number: 1, paidBytes: 1_277_952n, reason: "unmetered" }]);
		expect((await test.entries(`after=0&hash=${genesisHash}`, null)).status).toBe(401);
		expect((await test.entries(`after=0&hash=${genesisHash}`, { secret: new Uint8Array(32) })).status).toBe(401);
		expect((await test.entries(`after=0&hash=${genesisHash}`, { identity: backboneKey })).status).toBe(403);
	});

	it("refuse a key that is not listed, what is no receipt, and bad queries", async () => {
		await using test = await startLedgerSwarm();
		const s = { ...session(test.ledger.ledgerId), backbone: keyNamed("stranger") };
		const [receipt] = receiptChain(s, [1]);
		expect((await test.post(submissionOf(s, receipt!), s.backbone)).status).toBe(403);
		expect((await test.post({ ...submissionOf(s, receipt!), body: new Uint8Array(3) })).status).toBe(422);
		for (const query of ["after=-1", "after=x", `after=0&hash=${genesisHash}&limit=5000`, "after=0&hash=zz"]) {
			expect((await test.entries(query)).status).toBe(400);
		}
		const diverged = await test.entries(`after=7&hash=${"1".repeat(64)}`);
		expect([diverged.status, diverged.json]).toMatchObject([409, { diverged: { after: 7, head: 0, hash: null } }]);
	});

	it("hold receipts against what the live relay carried", async () => {
		await using test = await startLedgerSwarm();
		const worker = await dialWorker(test.swarm.host);
		worker.send(Buffer.alloc(100_000));
		await nextMessage(worker);
		const relay = String(test.swarm.backbone.requests[0]!.headers["x-kvasir-relay"]);
		const s = session(test.ledger.ledgerId, relay);
		const [honest, greedy] = receiptChain(s, [100, 100_000]);
		expect((await test.post(submissionOf(s, honest!))).json).toMatchObject({ status: "confirmed" });
		const refused = await test.post(submissionOf(s, greedy!));
		expect([refused.status, refused.json]).toMatchObject([422, { status: "refused", code: "implausible" }]);
		// Somebody else's relay is worth nothing.
		const other = { ...testSession(test.ledger.ledgerId, { relay, worker: "other" }), backbone: backboneKey };
		const stolen = await test.post(submissionOf(other, receiptChain(other, [1])[0]!));
		expect(stolen.json).toMatchObject({ status: "refused", code: "implausible" });
		worker.terminate();
	});

	it("answer a long poll when an entry comes, and at once when the hub closes", async () => {
		const test = await startLedgerSwarm();
		const s = session(test.ledger.ledgerId);
		const polling = test.entries(`after=0&hash=${genesisHash}&wait=20000`);
		await test.post(submissionOf(s, receiptChain(s, [1])[0]!));
		expect(parsePage((await polling).json).entries).toHaveLength(1);
		await test[Symbol.asyncDispose]();
	});
});

describe("the gateway's wallet routes", () => {
	it("show balances to anyone, credits and payouts to the owner, and take claims", async () => {
		await using test = await startLedgerSwarm();
		const s = session(test.ledger.ledgerId);
		const owner = keyNamed(`wallet of worker`);
		const address = addressOf(owner.publicKey);
		await test.post(submissionOf(s, receiptChain(s, [104])[0]!));
		await test.wallets.credit(parsePage((await test.entries(`after=0&hash=${genesisHash}`)).json));

		const balance = await test.wallet(address, null);
		expect(balance.json).toMatchObject({
			address,
			pending: "8945664",
			claimed: "0",
			servedBytes: "1277952",
			cursorLag: 0,
		});
		expect((await test.wallet(`${address}/credits`, null)).status).toBe(401);
		expect((await test.wallet(`${address}/credits`, { identity: keyNamed("nosy") })).status).toBe(403);
		const credits = await test.wallet(`${address}/credits?after=0&limit=10`, { identity: owner });
		expect(credits.json).toMatchObject({ credits: [{ entry: 1, nano: "8945664", status: "confirmed" }] });

		const claim = {
			ledgerId: Buffer.from(test.ledger.ledgerId, "hex"),
			wallet: owner.publicKey,
			number: 1,
			nano: 8_945_664n,
			address: owner.publicKey,
		};
		const signature = Buffer.from(owner.sign(claimText(claim))).toString("base64");
		const body = { ledgerId: test.ledger.ledgerId, number: 1, nano: "8945664", address, signature };
		expect((await test.wallet(`${address}/claims`, null, { ...body, nano: "1" })).status).toBe(401);
		expect((await test.wallet(`${address}/claims`, null, body)).json).toMatchObject({
			state: "claimed",
			nano: "8945664",
		});
		expect((await test.wallet(`${address}/payouts`, { identity: owner })).json).toMatchObject({
			payouts: [{ number: 1 }],
		});
		expect((await test.wallet(address, null)).json).toMatchObject({ pending: "0", claimed: "8945664" });
	});

	it("refuse what is no address and no claim", async () => {
		await using test = await startLedgerSwarm();
		expect((await test.wallet("nobody", null)).status).toBe(400);
		const address = addressOf(keyNamed("x").publicKey);
		expect((await test.wallet(`${address}/claims`, null, { nano: -1 })).status).toBe(400);
		expect((await test.wallet(`${address}/claims`, null, { ledgerId: "x".repeat(300_000) })).status).toBe(413);
	});
});

it("startHub() says which address it cannot listen on, and leaves nothing behind", async () => {
	await using test = await startLedgerSwarm();
	const { relay, api } = test.swarm.hub;
	const options = { secret: hubSecret, backboneKeys: [], ledgerId: "x" };
	const relays = relayStore(test.ledger);
	for (const addresses of [
		{ relay, api: { ...api, port: 0 } },
		{ relay: { ...relay, port: 0 }, api },
	]) {
		await expect(startHub({ ...options, ...addresses }, { ...realParts, relays })).rejects.toMatchObject({
			code: "network",
		});
	}
});
