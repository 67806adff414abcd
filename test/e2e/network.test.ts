import { describe, expect, it, onTestFinished } from "vitest";
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
	const hub = await startHubPart(home);
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
	it("a hub: the decode finishes, the worker comes back and serves on", async () => {
		const { home, hub, url } = await startScene({});
		const words = ["--prompt", "The capital of France is", "--tokens", "400", "--wait", "60"];
		const backbone = await dispatch(home, hub, words);
		await joinWith(home, url);
		await backbone.events.waitFor(({ event, index }) => event === "token" && Number(index) >= 10, 60_000);
		await hub.child.kill();
		await startHubPart(home, hub);
		const { answers, remote } = await doneOf(backbone, 120_000);
		expect(answers[0]!.tokens.length).toBeGreaterThan(10);
		expect(remote.answered + remote.fallback).toBe(remote.asked);
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

function heldOf(events: readonly { readonly event: string; readonly [field: string]: unknown }[]): number {
	return Number(events.findLast(({ event }) => event === "holding")?.experts ?? 0);
}
