import { describe, expect, it } from "vitest";
import { startSpliceSwarm, tokenFor } from "../../test/support/splice-swarm.ts";
import type { AdmitLimits } from "./gateway/admit.ts";

const digest = "ab".repeat(32);
const slice = Buffer.alloc(300_000, 7);

const swarmWithSlices = (limits: Partial<AdmitLimits> = {}) =>
	startSpliceSwarm({
		gateway: { limits },
		backbone: {
			onRequest(request, response) {
				if (request.url?.startsWith("/v1/models/tiny/manifest")) {
					return void response.writeHead(200, { "Content-Type": "application/json", "X-Secret": "inside" }).end("{}");
				}
				if (!request.url?.includes(digest)) return void response.writeHead(404).end();
				const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
				if (from === undefined) return void response.end(slice);
				const part = slice.subarray(Number(from), Number(to) + 1);
				response.writeHead(206, {
					"Content-Range": `bytes ${from}-${to}/${slice.length}`,
					"Content-Length": part.length,
				});
				response.end(part);
			},
		},
	});

describe("manifests and slices through gateway and hub", () => {
	it("carry whole bodies and ranges over parked sockets", async () => {
		await using swarm = await swarmWithSlices();
		const get = (path: string, signedModel: string, headers = {}) =>
			fetch(`http://${swarm.host}${path}`, {
				headers: { Authorization: tokenFor(swarm.host, { signedModel }), ...headers },
			});
		const manifest = await get("/v1/models/tiny/manifest", "tiny");
		expect([manifest.status, await manifest.text(), manifest.headers.get("x-secret")]).toEqual([200, "{}", null]);
		const whole = await get(`/v1/slices/${digest}?model=tiny`, "tiny");
		expect(Buffer.from(await whole.arrayBuffer()).equals(slice)).toBe(true);
		const part = await get(`/v1/slices/${digest}`, "", { Range: "bytes=10-19" });
		expect([part.status, part.headers.get("content-range"), (await part.arrayBuffer()).byteLength]).toEqual([
			206,
			"bytes 10-19/300000",
			10,
		]);
		expect((await get(`/v1/slices/${"0".repeat(64)}`, "")).status).toBe(404);
		expect(swarm.backbone.requests.map(({ headers }) => headers["x-kvasir-key"])).not.toContain(undefined);
	});

	it("are refused without a token, with a body, and for anything that is no digest", async () => {
		await using swarm = await swarmWithSlices();
		const origin = `http://${swarm.host}`;
		expect((await fetch(`${origin}/v1/slices/${digest}`)).status).toBe(401);
		const headers = { Authorization: tokenFor(swarm.host, { signedModel: "" }) };
		expect((await fetch(`${origin}/v1/slices/${digest}`, { method: "POST", body: "x", headers })).status).toBe(405);
		expect((await fetch(`${origin}/v1/slices/../../etc`, { headers })).status).toBe(404);
		expect((await fetch(`${origin}/v1/slices/${digest.slice(2)}`, { headers })).status).toBe(404);
		expect(swarm.backbone.requests).toHaveLength(0);
	});

	it("are limited per key", async () => {
		await using swarm = await swarmWithSlices({ sliceRatePerSecond: 0.01 });
		const get = () =>
			fetch(`http://${swarm.host}/v1/slices/${digest}`, {
				headers: { Authorization: tokenFor(swarm.host, { signedModel: "" }) },
			});
		const first = await get();
		expect((await first.arrayBuffer()).byteLength).toBe(slice.length);
		const second = await get();
		expect([second.status, Number(second.headers.get("retry-after")) >= 1]).toEqual([429, true]);
	});
});
