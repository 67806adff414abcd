import { readdir, writeFile } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryHome } from "../../../test/support/temporary-home.ts";
import { until } from "../../../test/support/until.ts";
import { keyPairFromSeed, sha256 } from "../../io/crypto.ts";
import { silentLog } from "../../io/log.ts";
import { sliceOf } from "../../model/expert-slice.ts";
import { openModel } from "../../model/open-model.ts";
import { tinyModelPath } from "../../model/synthetic.ts";
import { openManifest } from "../../protocol/manifest.ts";
import { manifestOfFile } from "./manifest-cache.ts";
import { openSliceService } from "./slices.ts";

const identity = keyPairFromSeed(new Uint8Array(32).fill(6));

async function startService(home: string) {
	const service = await openSliceService({
		model: await openModel(tinyModelPath, "tiny"),
		identity,
		home,
		log: silentLog,
	});
	const server = http.createServer((request, response) => service.serve(request, response));
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	onTestFinished(async () => {
		server.closeAllConnections();
		server.close();
		await service.close();
	});
	const { port } = server.address() as AddressInfo;
	const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
		fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { "x-kvasir-key": "someone", ...headers } });
	return { service, get };
}

describe("openSliceService()", () => {
	it("lists every expert, signed, and serves each by its digest, whole and in ranges", async () => {
		const { service, get } = await startService(await temporaryHome());
		const first = await get("/v1/models/tiny/manifest");
		expect([first.status, first.headers.get("retry-after")]).toEqual([503, "2"]);
		await until(() => service.digest !== null, "the manifest");
		const { manifest, digest, key } = openManifest(await (await get("/v1/models/tiny/manifest?backbone=x")).text());
		expect([key, digest]).toEqual([identity.publicKey, service.digest]);
		const model = await openModel(tinyModelPath);
		const last = [model.shape.layers - 1, model.shape.experts - 1] as const;
		const slice = sliceOf(await model.weights.expert(...last));
		await model.weights.close();
		const name = manifest.layers[last[0]]!.slices[last[1]]!;
		expect(name).toBe(Buffer.from(sha256(slice)).toString("hex"));
		const whole = await get(`/v1/slices/${name}`);
		expect([whole.status, whole.headers.get("accept-ranges")]).toEqual([200, "bytes"]);
		expect(Buffer.from(await whole.arrayBuffer()).equals(slice)).toBe(true);
		const part = await get(`/v1/slices/${name}`, { range: "bytes=10-19" });
		expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 10-19/${slice.length}`]);
		expect(Buffer.from(await part.arrayBuffer()).equals(slice.subarray(10, 20))).toBe(true);
		const beyond = await get(`/v1/slices/${name}`, { range: `bytes=${slice.length}-` });
		expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, `bytes */${slice.length}`]);
		expect(service.sliceBytes).toBeGreaterThanOrEqual(slice.length);
	});

	it("refuses what no gateway admitted, other methods, and what it does not have", async () => {
		const { service, get } = await startService(await temporaryHome());
		service.prepare();
		await until(() => service.digest !== null, "the manifest");
		const name = "0".repeat(64);
		expect((await get(`/v1/slices/${name}`)).status).toBe(404);
		expect((await get("/v1/models/other/manifest")).status).toBe(404);
		expect((await get("/v1/slices/..%2f..")).status).toBe(404);
		expect((await get(`/v1/slices/${name}`, {}, "DELETE")).status).toBe(405);
		const unsigned = await get(`/v1/slices/${name}`, { "x-kvasir-key": "" });
		expect([401, 404]).toContain(unsigned.status);
	});
});

describe("manifestOfFile()", () => {
	it("reads a file once, and again when what it kept is damaged", async () => {
		const home = await temporaryHome();
		const model = await openModel(tinyModelPath, "tiny");
		let read = 0;
		const onProgress = () => {
			read++;
		};
		const text = await manifestOfFile(model, home, { onProgress });
		const once = read;
		expect(await manifestOfFile(model, home, { onProgress })).toBe(text);
		expect([once > 0, read]).toEqual([true, once]);
		const folder = join(home, "manifests");
		const [name] = await readdir(folder);
		await writeFile(join(folder, name!), text.slice(0, 100));
		expect(await manifestOfFile(model, home, { onProgress })).toBe(text);
		expect(read).toBe(2 * once);
		await model.weights.close();
	});
});
