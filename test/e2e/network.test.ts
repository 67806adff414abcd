import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/io/clock.ts";
import { type EntryPage, genesisHash, pageJson, parsePage } from "../../src/ledger/entry.ts";
import { openHubLedger } from "../../src/ledger/hub-ledger.ts";
import type { Child } from "../../src/swarm/child.ts";
import { freePort } from "../support/free-port.ts";
import { type Impairment, startImpairingRelay } from "../support/impairing-relay.ts";
import { startGatewayPart, startHubPart, startPart } from "../support/part-processes.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { type Done, doneOf } from "../support/test-swarm.ts";
import { until } from "../support/until.ts";

const prompt = ["--prompt", "The capital of France is", "--tokens", "8"];
const nowhere = { host: "127.0.0.1", port: 1 };

/** Hub, and a gateway behind a relay whose address is the public one. */
async function startScene(impairment: Impairment) {
	const home = await temporaryHome();
	const relay = await startImpairingRelay(nowhere, impairment);
	onTestFinished(() => relay[Symbol.asyncDispose]());
	const publicHost = `127.0.0.1:${relay.port}`;
	const [relayPort, apiPort] = [await freePort(), await freePort()];
	const hub = await startHubPart(home, { relay: `127.0.0.1:${relayPort}`, api: `127.0.0.1:${apiPort}` });
	const startGateway = async (listen = "127.0.0.1:0") => {
		const gateway = await startGatewayPart(home, hub, { listen }, { args: ["--public-host", publicHost] });
		relay.target = { host: "127.0.0.1", port: gateway.port };
		return gateway;
	};
	return { home, relay, hub, gateway: await startGateway(), startGateway, url: `ws://${publicHost}` };
}

/** A backbone that is parked: a worker that comes then need not come twice. */
async function dispatch(home: string, hub: { relay: string }, words: readonly string[]) {
	const backbone = await startPart(home, "backbone", ["backbone", "dispatch", "--hub", hub.relay, ...words]);
	await backbone.events.waitFor(({ event }) => event === "parked", 20_000);
	return backbone;
}
const joinWith = (home: string, url: string, args: readonly string[] = ["--model", "tiny", "--hold", "all:all"]) =>
	startPart(home, "worker", ["join", url, ...args]);

let local: Promise<Done> | null = null;

/** The same decode with nothing remote, once for all tests. */
function localRun(home: string): Promise<Done> {
	const words = ["backbone", "dispatch", "--listen", "127.0.0.1:0", ...prompt, "--remote", "none"];
	local ??= startPart(home, "local", words).then((backbone) => doneOf(backbone));
	return local;
}

function expectSame(remote: Done, local: Done): void {
	const facts = ({ answers }: Done) => answers.map(({ tokens, logitsSha256 }) => ({ tokens, logitsSha256 }));
	expect(facts(remote)).toEqual(facts(local));
	expect(remote.remote).toMatchObject({ answered: remote.remote.asked, fallback: 0 });
}

describe("a decode over a bad path", () => {
	it.each([
		["13 ms round trips", { delayMs: 6.5 }],
		["80 ms round trips with jitter", { delayMs: 40, jitterMs: 15 }],
		["200 ms round trips", { delayMs: 100 }],
		["2 Mbit/s at 40 ms", { delayMs: 20, bytesPerSecond: 250_000 }],
		["losses that stall one chunk of twenty for 400 ms", { delayMs: 10, stallShare: 0.05, stallMs: 400 }],
	])("has the tokens and logits of a local run, none of them computed here: %s", async (_, impairment) => {
		const { home, hub, url } = await startScene(impairment);
		const backbone = await dispatch(home, hub, [...prompt, "--wait", "60", "--require-remote", "--prefill", "remote"]);
		await joinWith(home, url);
		expectSame(await doneOf(backbone, 120_000), await localRun(home));
	});

	it("fetches its experts over 40 ms and 16 Mbit/s, connections being reset all the while", async () => {
		const { home, hub, relay, url } = await startScene({ delayMs: 20, bytesPerSecond: 2_000_000 });
		const backbone = await dispatch(home, hub, [...prompt, "--wait", "100", "--require-remote"]);
		const worker = await joinWith(home, url, []);
		for (let resets = 0; resets < 5; resets++) {
			const before = heldOf(worker.events.all);
			await until(
				() => heldOf(worker.events.all) > before || heldOf(worker.events.all) === 64,
				"another expert",
				60_000,
			);
			relay.reset();
		}
		relay.impairment = {};
		expectSame(await doneOf(backbone, 120_000), await localRun(home));
	});
});

describe("what is restarted in the middle of a decode", () => {
	it("a hub: the decode finishes, the worker comes back and serves on, no acknowledged receipt is lost", async () => {
		const { home, hub, url } = await startScene({});
		const first = await dispatch(home, hub, [...prompt, "--wait", "60"]);
		await joinWith(home, url);
		await doneOf(first, 120_000);
		expect(acknowledgedBy(first)).not.toHaveLength(0);

		const backbone = await dispatch(home, hub, ["--api", "127.0.0.1:0"]);
		const api = await backbone.events.waitFor(({ event }) => event === "api", 60_000);
		const joins = () => backbone.events.all.filter(({ event }) => event === "joined").length;
		await until(() => joins() === 1, "the worker to join", 60_000);
		const decode = (tokens: number) =>
			fetch(`http://127.0.0.1:${api.port}/v1/completions`, {
				method: "POST",
				headers: { "content-type": "application/json" },
				body: JSON.stringify({ model: "tiny", prompt: "The capital of France is", max_tokens: tokens, stream: true }),
			}).then(({ body }) => body!.pipeThrough(new TextDecoderStream()).getReader());
		const reader = await decode(400);
		let text = "";
		const readOn = async (enough: () => boolean) => {
			for (let part = await reader.read(); !part.done; part = await reader.read()) {
				text += part.value;
				if (enough()) return;
			}
		};
		await readOn(() => text.split("data: ").length > 10);
		await hub.child.kill();
		const restarted = await startHubPart(home, hub);
		await readOn(() => false);
		expect(text).toContain("data: [DONE]");
		await until(() => joins() === 2, "the worker to come back", 90_000);
		for (const again = await decode(8); !(await again.read()).done; );
		await backbone.stop();
		await restarted.child.stop();

		const acknowledged = [...acknowledgedBy(first), ...acknowledgedBy(backbone)];
		expect(await entriesOf(home)).toEqual(expect.arrayContaining(acknowledged));
		// Of the session that the hub's end cut off, and of the one after it.
		expect(acknowledgedBy(backbone).length).toBeGreaterThanOrEqual(2);
	});

	it("a gateway: the worker dials the new one and is asked again", async () => {
		const { home, hub, gateway, startGateway, url, relay } = await startScene({});
		const backbone = await dispatch(home, hub, ["--api", "127.0.0.1:0"]);
		await joinWith(home, url);
		const joins = () => backbone.events.all.filter(({ event }) => event === "joined").length;
		await until(() => joins() === 1, "the worker to join", 60_000);
		await gateway.child.kill();
		await until(() => relay.open === 0, "the link to be gone");
		await startGateway();
		await until(() => joins() === 2, "the worker to come back", 90_000);
		expect(backbone.events.all.filter(({ event }) => event === "left")).toHaveLength(1);
	});
});

/** Numbers of the ledger's entries that the hub told a backbone it has stored. */
function acknowledgedBy(backbone: Child): number[] {
	return backbone.events.all.filter(({ event }) => event === "receipt").map(({ entry }) => Number(entry));
}

/** Numbers of the entries that are in the hub's ledger, its chain checked; the hub is stopped. */
async function entriesOf(home: string): Promise<number[]> {
	const ledger = await openHubLedger(join(home, "hub", "hub.db"), { clock: systemClock, mustExist: true });
	try {
		const page = parsePage(
			JSON.parse(JSON.stringify(pageJson((await ledger.entriesAfter(0, genesisHash, 500)) as EntryPage))),
		);
		return page.entries.map(({ number }) => number);
	} finally {
		await ledger.close();
	}
}

function heldOf(events: readonly { readonly event: string; readonly [field: string]: unknown }[]): number {
	return Number(events.findLast(({ event }) => event === "holding")?.experts ?? 0);
}
