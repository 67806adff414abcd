import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { addressOf } from "../../src/io/base58.ts";
import { silentLog } from "../../src/io/log.ts";
import { checkLedgers, readHubFigures } from "../../src/ledger/check.ts";
import { openGatewayStore } from "../../src/ledger/gateway-store.ts";
import { openHubStore } from "../../src/ledger/hub-store.ts";
import type { WorkerAnswer } from "../../src/ledger/submission.ts";
import { createNonceCache } from "../../src/protocol/nonce-cache.ts";
import { walletRoutes } from "../../src/splice/gateway/wallet-routes.ts";
import { createRouter } from "../../src/splice/http/router.ts";
import { exactKvrText } from "../../src/wallet/amounts.ts";
import { readBalance } from "../../src/wallet/balance.ts";
import { gatewayClient } from "../../src/wallet/gateway-client.ts";
import { readHistory } from "../../src/wallet/history.ts";
import { openLocalReceipts, readLocalReceipts } from "../../src/wallet/local-receipts.ts";
import { reconcile } from "../../src/wallet/reconcile.ts";
import { fakeClock } from "../support/fake-clock.ts";
import {
	keyNamed,
	originOf,
	receiptChain,
	submissionOf,
	type TestReceipt,
	type TestSession,
	testSession,
} from "../support/receipts.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { temporaryHome } from "../support/temporary-home.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const people = ["ann", "bob"] as const;
type Person = (typeof people)[number];

/** Hub, gateway with its wallet API, and two homes; time passes only in the script. */
async function openWeek(seed: number) {
	const clock = fakeClock();
	const random = seededRandom(seed);
	const hub = await openHubStore(":memory:", { clock, random });
	const gateway = await openGatewayStore(":memory:", { clock });
	const closing = new AbortController();
	const parts = { clock, log: silentLog, nonces: createNonceCache(clock), closing: closing.signal };
	const server = createServer(createRouter(walletRoutes(gateway), parts));
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	const homes = new Map<Person, Awaited<ReturnType<typeof openHome>>>();
	for (const name of people) homes.set(name, await openHome());
	onTestFinished(async () => {
		closing.abort();
		server.closeAllConnections();
		server.close();
		for (const { log } of homes.values()) await log.close();
		await gateway.close();
		await hub.close();
	});
	const client = gatewayClient({ gateway: url, clock, random });

	async function openHome() {
		const path = await temporaryHome();
		return { path, log: await openLocalReceipts(path) };
	}
	return { clock, random, hub, gateway, client, homes };
}

type Week = Awaited<ReturnType<typeof openWeek>>;

/** What `wallet balance`, `history` and `reconcile` say, against `ledger check`: to the nano, for every wallet. */
async function compare({ hub, gateway, client, homes }: Week): Promise<void> {
	const figures = await gateway.check();
	const check = checkLedgers(figures, await readHubFigures(hub, figures.cursor));
	expect(check.differences).toEqual([]);
	for (const name of people) {
		const key = keyNamed(name);
		const address = addressOf(key.publicKey);
		const home = homes.get(name)!.path;
		const line = check.wallets.find(({ wallet }) => wallet === address) ?? null;
		const zero = { pending: 0n, claimed: 0n, paid: 0n, notPolled: 0n };
		const { pending, claimed, paid, notPolled } = line ?? zero;

		const balance = await readBalance({ home, address, client });
		expect([balance.pending, balance.claimed, balance.paid]).toEqual([pending, claimed, paid].map(exactKvrText));

		const lines = await readHistory(client.credits(key, 0), await client.payouts(key));
		const sum = (kind: string) =>
			lines.filter((entry) => entry.kind === kind).reduce((total, { nano }) => total + BigInt(nano), 0n) * 1_000_000n;
		expect(sum("credit")).toBe(pending + claimed + paid);
		expect(sum("paid")).toBe(paid);
		expect(sum("claimed") - sum("paid") - sum("failed")).toBe(claimed);

		const { cursorLag } = await client.balance(address);
		const view = await reconcile(address, readLocalReceipts(home), { credits: client.credits(key, 0), cursorLag });
		expect(view.units.credited).toBe(balance.units);
		// Of what came to the hub since its last poll the gateway knows nothing.
		const waiting = view.differences.filter(({ reason }) => reason === "not_polled" || reason === "not_at_hub");
		const waitingBytes = waiting.reduce((total, { localBytes }) => total + BigInt(localBytes!), 0n);
		expect(waitingBytes * 7_000_000n).toBe(notPolled);
		const reasons = new Set(view.differences.map(({ reason }) => reason));
		for (const reason of reasons) expect(["not_polled", "not_at_hub", "disputed", "conflict"]).toContain(reason);
	}
}

/** A session's receipts, as they leave its backbone, and how its worker takes them. */
class Session {
	readonly #week: Week;
	readonly #person: Person;
	readonly #session: TestSession;
	readonly #receipts: TestReceipt[];

	constructor(week: Week, person: Person, name: string, pairs: readonly number[], issuedAtMs: number) {
		this.#week = week;
		this.#person = person;
		this.#session = testSession(week.hub.ledgerId, { worker: `worker of ${person}`, wallet: person, session: name });
		this.#receipts = receiptChain(this.#session, pairs, { issuedAtMs });
	}

	/** Receipt `at` reaches the hub; its worker keeps a copy unless it disputes. */
	async post(at: number, answer?: WorkerAnswer): Promise<string> {
		const receipt = this.#receipts[at]!;
		const { hub, homes } = this.#week;
		const { body, signature, answer: said } = submissionOf(this.#session, receipt, answer);
		const disputed = said !== null && "pairs" in said;
		const { hash, receipt: facts } = receipt;
		if (!disputed) {
			await homes.get(this.#person)!.log.append({
				receipt: Buffer.from(hash).toString("hex"),
				backbone: addressOf(facts.backbone),
				worker: addressOf(facts.worker),
				payout: addressOf(facts.payout),
				session: Buffer.from(facts.session).toString("hex"),
				number: facts.number,
				pairs: facts.pairs,
				servedBytes: facts.servedBytes,
				rate: 7_000_000n,
				countersigned: true,
				atMs: facts.issuedAtMs,
			});
		}
		return (await hub.acceptReceipt({ body, signature, answer: said }, originOf(this.#session))).status;
	}
}

async function poll({ hub, gateway }: Week, limit = 500): Promise<void> {
	const { after, hash } = await gateway.cursor();
	const page = await hub.entriesAfter(after, hash, limit);
	if ("diverged" in page) throw new Error("diverged");
	await gateway.credit(page);
}

test("a week of sessions: balance, history and reconcile agree with ledger check at every point", async () => {
	const week = await openWeek(11);
	const { clock, random, client, gateway } = week;
	let points = 0;
	const point = async (what: Promise<unknown>) => {
		await what;
		await clock.advance(Math.floor(hourMs * random.uniform()));
		await compare(week);
		points++;
	};
	for (let day = 0; day < 7; day++) {
		for (const person of people) {
			// On the third day the backbone's clock is a day behind, on the fifth a day ahead.
			const offMs = day === 2 ? -dayMs : day === 4 ? dayMs : 0;
			const pairs = Array.from({ length: 4 }, () => 1 + Math.floor(random.uniform() * 5_000));
			const session = new Session(week, person, `${person} ${day}`, pairs, clock.now() + offMs);
			await point(session.post(0));
			if (day !== 3) await point(poll(week, 2)); // the fourth day the gateway is away
			await point(session.post(2, null));
			await point(session.post(1));
			await point(session.post(2)); // the countersignature came after all
			await point(session.post(1)); // and one receipt comes twice
			// What is credited otherwise than it was receipted is compared once the gateway knows why.
			if (day === 5) await point(session.post(3, { pairs: 1, digest: new Uint8Array(32) }).then(() => poll(week)));
			if (day === 6) {
				const rival = new Session(week, person, `${person} 6`, [7, 7, 7], 0);
				const before = await week.hub.totals(0, null);
				expect(await rival.post(0)).toBe("conflict");
				expect(await week.hub.totals(0, null)).toEqual(before);
				await point(poll(week));
			}
			if (day !== 3) await point(poll(week));
		}
		const wallet = keyNamed("ann");
		const address = addressOf(keyNamed("ann's exchange").publicKey);
		if (day === 1 || day === 4) await point(client.claim(wallet, { nano: null, address }));
		if (day === 3) {
			await point(client.claim(wallet, { nano: 5n, address }).catch(() => {}));
			for (const { id } of await gateway.exportPayouts()) await point(gateway.confirmPayout(id, `transaction ${id}`));
		}
		if (day === 5) {
			for (const { id } of await gateway.exportPayouts()) await point(gateway.releasePayout(id, "no such account"));
		}
	}
	await point(poll(week));
	expect(points).toBeGreaterThan(80);
	const { all, ok } = checkLedgers(await gateway.check(), null);
	expect({ ok, notPolled: all.notPolled, paid: all.paid > 0n }).toEqual({ ok: true, notPolled: 0n, paid: true });
});
