import { once } from "node:events";
import { expect, it } from "vitest";
import { rawExchange, upgradeHead } from "../../../test/support/raw-http.ts";
import { dialWorker, eventually, startSpliceSwarm, tokenFor } from "../../../test/support/splice-swarm.ts";

const anyModel = (host: string) => tokenFor(host, { signedModel: "" });

it("an idle link is admitted as a worker's, reaches no backbone, and is answered with a goodbye at its first byte", async () => {
	await using swarm = await startSpliceSwarm();
	const link = await dialWorker(swarm.host, { path: "/v1/idle", authorization: anyModel(swarm.host) });
	const closed = once(link, "close");
	link.send("are you there?");
	expect((await closed)[0]).toBe(1000);
	expect(swarm.backbone.requests).toHaveLength(0);
	const metrics = await (await fetch(`http://127.0.0.1:${swarm.gateway.admin.port}/metrics`)).text();
	expect(metrics).toContain('kvasir_gateway_requests_total{outcome="idle"} 1');
});

it("an idle link is refused without a token and beside too many, and its place is free once it is gone", async () => {
	await using swarm = await startSpliceSwarm({ gateway: { limits: { linksPerKeyMax: 1 } } });
	const idle = () => dialWorker(swarm.host, { path: "/v1/idle", authorization: anyModel(swarm.host) });
	const stranger = await rawExchange(swarm.gateway.address, upgradeHead(swarm.host, {}, { path: "/v1/idle" }));
	expect(stranger.status).toBe(401);
	const first = await idle();
	await expect(dialWorker(swarm.host)).rejects.toMatchObject({ status: 429 });
	first.terminate();
	await eventually("the place to be free", () =>
		idle().then(
			(second) => {
				second.terminate();
				return true;
			},
			() => false,
		),
	);
});

it("a gateway that closes leaves no idle link behind", async () => {
	const swarm = await startSpliceSwarm();
	const link = await dialWorker(swarm.host, { path: "/v1/idle", authorization: anyModel(swarm.host) });
	link.on("error", () => {});
	const closed = once(link, "close");
	await swarm[Symbol.asyncDispose]();
	await closed;
});
