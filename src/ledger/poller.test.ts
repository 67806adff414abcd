import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fakeClock, settle } from "../../test/support/fake-clock.ts";
import { originOf, receiptChain, submissionOf, testSession } from "../../test/support/receipts.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { KvasirError } from "../errors.ts";
import { addressOf } from "../io/base58.ts";
import { silentLog } from "../io/log.ts";
import { checkLedgers, readHubFigures } from "./check.ts";
import { pageJson, parsePage } from "./entry.ts";
import { type GatewayStore, openGatewayStore } from "./gateway-store.ts";
import { type HubStore, openHubStore } from "./hub-store.ts";
import { type FetchEntries, type PollerState, pollCredits } from "./poller.ts";

async function stores(): Promise<{ hub: HubStore; gateway: GatewayStore }> {
	const clock = fakeClock();
	const hub = await openHubStore(":memory:", { clock, random: seededRandom(1) });
	return { hub, gateway: await openGatewayStore(":memory:", { clock }) };
}

/** What HTTP does between them: JSON both ways. */
const over =
	(hub: HubStore): FetchEntries =>
	async ({ after, hash, limit }) => {
		const page = await hub.entriesAfter(after, hash, limit);
		return "diverged" in page ? page : parsePage(JSON.parse(JSON.stringify(pageJson(page))));
	};

/** Polls until `enough` of the states seen is true; time goes by while it waits. */
async function pollUntil(
	fetchEntries: FetchEntries,
	store: Pick<GatewayStore, "cursor" | "credit">,
	enough: (states: PollerState[]) => boolean,
) {
	const clock = fakeClock();
	const stop = new AbortController();
	const states: PollerState[] = [];
	const onState = (state: PollerState) => {
		states.push(state);
		if (enough(states)) stop.abort();
	};
	const polling = pollCredits({
		fetchEntries,
		store,
		clock,
		random: seededRandom(2),
		log: silentLog,
		signal: stop.signal,
		onState,
	});
	let ended = false;
	polling.then(() => {
		ended = true;
	});
	for (let i = 0; !ended; i++) {
		if (i > 10_000) throw new Error("the poller never got there");
		await clock.advance(1_000);
	}
	expect(clock.pending).toBe(0);
	return states;
}

describe("pollCredits()", () => {
	it("credits everything once while polls fail, are cut off after crediting, and are repeated", async () => {
		const { hub, gateway } = await stores();
		const s = testSession(hub.ledgerId);
		const receipts = receiptChain(
			s,
			Array.from({ length: 30 }, (_, i) => i + 1),
		);
		for (const receipt of receipts) await hub.acceptReceipt(submissionOf(s, receipt), originOf(s));
		let calls = 0;
		const flaky: FetchEntries = async (query, signal) => {
			calls++;
			if (calls % 3 === 1) throw new Error("connection refused");
			return over(hub)({ ...query, limit: 4 }, signal);
		};
		const forgetful = {
			cursor: () => gateway.cursor(),
			async credit(page: Parameters<GatewayStore["credit"]>[0]) {
				const cursor = await gateway.credit(page);
				// The process dies after the commit, before it knows.
				if (calls % 5 === 0) throw new Error("killed");
				return cursor;
			},
		};
		const states = await pollUntil(flaky, forgetful, (seen) => seen.length > 40);
		expect(states.some((state) => state.state === "unreachable")).toBe(true);
		const total = receipts.reduce((sum, { receipt }) => sum + receipt.servedBytes, 0n);
		const balance = await gateway.balance(addressOf(s.payout));
		expect([balance.servedBytes, balance.pending]).toEqual([total, total * 7n]);
		const check = await gateway.check();
		expect(checkLedgers(check, await readHubFigures(hub, check.cursor)).differences).toEqual([]);
	});

	it("credits nothing from a hub whose history is another, and goes on when it is restored", async () => {
		const { hub, gateway } = await stores();
		const other = await openHubStore(":memory:", { clock: fakeClock(), random: seededRandom(9) });
		for (const store of [hub, other]) {
			const s = testSession(store.ledgerId);
			for (const receipt of receiptChain(s, [5, 6])) await store.acceptReceipt(submissionOf(s, receipt), originOf(s));
		}
		const wallet = addressOf(testSession(hub.ledgerId).payout);
		await pollUntil(over(hub), gateway, (seen) => seen.length === 1);
		const before = await gateway.balance(wallet);
		let current = other;
		const states = await pollUntil(
			(query, signal) => over(current)(query, signal),
			gateway,
			(seen) => {
				if (seen.length === 3) current = hub;
				return seen.at(-1)!.state === "crediting";
			},
		);
		expect(states.map((state) => state.state)).toEqual(["diverged", "diverged", "diverged", "crediting"]);
		expect(states[0]!.error).toContain("another entry there");
		expect((await gateway.balance(wallet)).pending).toBe(before.pending);
		const check = await gateway.check();
		expect(checkLedgers(check, await readHubFigures(other, check.cursor)).differences.join()).toContain(
			"another or none",
		);
	});

	it("ends while it waits, without an error", async () => {
		const { gateway } = await stores();
		const stop = new AbortController();
		const hanging: FetchEntries = (_, signal) =>
			new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
		const parts = { clock: fakeClock(), random: seededRandom(3), log: silentLog };
		const polling = pollCredits({ ...parts, fetchEntries: hanging, store: gateway, signal: stop.signal });
		await settle();
		stop.abort();
		await polling;
	});
});

describe("checkLedgers()", () => {
	it("accounts for every receipt at every cut: not polled, pending, claimed, paid, remainder", async () => {
		await fc.assert(
			fc.asyncProperty(fc.nat(12), fc.constantFrom(7_000_000n, 333n), async (polled, rate) => {
				const clock = fakeClock();
				const policies = [{ number: 1, nanoPerMillionBytes: rate }];
				const hub = await openHubStore(":memory:", { clock, random: seededRandom(1), policies });
				const gateway = await openGatewayStore(":memory:", { clock });
				for (const worker of ["one", "two", "three"]) {
					const s = testSession(hub.ledgerId, { worker });
					for (const receipt of receiptChain(s, [1, 2, 3, 4], { hidden: 17 }))
						await hub.acceptReceipt(submissionOf(s, receipt), originOf(s));
				}
				const { after, hash } = await gateway.cursor();
				if (polled > 0) {
					const page = await hub.entriesAfter(after, hash, polled);
					if (!("diverged" in page)) await gateway.credit(page);
				}
				const check = await gateway.check();
				const figures = await readHubFigures(hub, check.cursor);
				const result = checkLedgers(check, figures);
				expect(result.differences).toEqual([]);
				expect(result.all.earned).toBe(BigInt(30 * 17 * 4) * rate);
				// Whatever is changed, it shows.
				const [first] = check.wallets;
				if (first === undefined) return;
				const less = {
					...check,
					wallets: check.wallets.map((wallet) =>
						wallet === first ? { ...wallet, pending: wallet.pending + 1n } : wallet,
					),
				};
				expect(checkLedgers(less, figures).ok).toBe(false);
				expect(checkLedgers(check, { ...figures, total: figures.total.slice(1) }).ok).toBe(false);
			}),
			{ numRuns: 8 },
		);
	});
});

it("parsePage() refuses what is not a page", () => {
	for (const json of [
		null,
		{},
		{ ledgerId: "x", head: 1, entries: [] },
		{ ledgerId: "ab".repeat(16), head: -1, entries: [] },
		{ ledgerId: "ab".repeat(16), head: 1, entries: [{}] },
	]) {
		expect(() => parsePage(json)).toThrow(KvasirError);
	}
});
