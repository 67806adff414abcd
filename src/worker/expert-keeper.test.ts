import { describe, expect, it, onTestFinished } from "vitest";
import { plainEngine, plainModel } from "../../test/support/plain-engine.ts";
import { bytes, sampleWelcomeBody } from "../../test/support/sample-messages.ts";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { sendFrom, startSliceServer } from "../../test/support/slice-server.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { until } from "../../test/support/until.ts";
import { buildManifest } from "../backbone/slices/manifest.ts";
import type { KvasirError } from "../errors.ts";
import { systemClock } from "../io/clock.ts";
import { keyPairFromSeed } from "../io/crypto.ts";
import { silentLog } from "../io/log.ts";
import { sliceOf } from "../model/expert-slice.ts";
import { type Manifest, manifestDigest, manifestText, signManifest } from "../protocol/manifest.ts";
import type { ExpertRange } from "../protocol/messages.ts";
import { ExpertKeeper, type KeeperParts } from "./expert-keeper.ts";
import { openSliceCache } from "./slice-cache.ts";
import type { WorkerEvent } from "./worker-event.ts";

const dims = { layers: 2, experts: 4, hidden: 16, width: 4 };
const backbone = keyPairFromSeed(bytes(32, 4));
const model = plainModel(dims, bytes(32, 2));
const facts = { ...sampleWelcomeBody.model, ...dims, modelId: bytes(32, 2), expertWidth: dims.width, name: "tiny" };
const linked = () => true;
const manifestOf = (source = model): Promise<Manifest> =>
	buildManifest({ ...source, name: "tiny", shape: { ...dims, expertWidth: dims.width } as never });

/** A keeper whose gateway serves `manifest` and the slices of the model, as `spoil` leaves them. */
async function startScene(
	change: Partial<KeeperParts> = {},
	{
		manifest,
		signer = backbone,
		spoil = (slice: Uint8Array) => slice,
		others = [],
	}: {
		/** Manifests that are given one after the other behind the first; the last one stays. */
		others?: readonly Manifest[];
		manifest?: Manifest;
		signer?: typeof backbone;
		spoil?: (slice: Uint8Array) => Uint8Array;
	} = {},
) {
	const listings = [manifest ?? (await manifestOf()), ...others];
	const slices = new Map<string, Uint8Array>();
	for (const [layer, { slices: digests }] of (await manifestOf()).layers.entries()) {
		for (const [expert, digest] of digests.entries())
			slices.set(digest, sliceOf(await model.weights.expert(layer, expert)));
	}
	const server = await startSliceServer((response, { from, request }) => {
		const path = server.requests[request]!.url!.split("?")[0]!;
		if (path === "/v1/models/tiny/manifest")
			return void response.end(
				signManifest(manifestText(listings.length > 1 ? listings.shift()! : listings[0]!), signer),
			);
		const slice = slices.get(path.slice("/v1/slices/".length));
		if (slice === undefined) response.writeHead(404).end();
		else sendFrom(response, spoil(slice), from);
	});
	const events: WorkerEvent[] = [];
	const failures: KvasirError[] = [];
	const shorts: string[] = [];
	const told: ExpertRange[][] = [];
	const stop = new AbortController();
	onTestFinished(() => stop.abort(new Error("the test is over")));
	const keeper = new ExpertKeeper({
		engine: plainEngine(),
		model: null,
		hold: null,
		slices: {
			cache: await openSliceCache({ folder: await temporaryHome(), bytesMax: 2 ** 20, clock: systemClock }),
			client: () => server.client,
		},
		clock: systemClock,
		random: { ...seededRandom(1), uniform: () => 0 },
		log: silentLog,
		signal: stop.signal,
		onEvent: (event) => events.push(event),
		onChanged: () => told.push(keeper.held.ranges()),
		onShort: (state) => shorts.push(state),
		onFailed: (error) => failures.push(error),
		...change,
	});
	const assignUnder = (digest: Uint8Array, ...wanted: ExpertRange[]) =>
		keeper.assigned({ kind: "assign", wanted, manifestDigest: digest, slicePath: "/v1/slices/" });
	const assign = (...wanted: ExpertRange[]) => assignUnder(new Uint8Array(32), ...wanted);
	return { keeper, server, events, failures, shorts, told, assign, assignUnder };
}

describe("ExpertKeeper", () => {
	it("fetches what is assigned, tells as soon as the first is ready, and follows the newest wish", async () => {
		const { keeper, told, assign } = await startScene();
		keeper.meet(backbone.publicKey, facts, linked);
		assign({ layer: 0, first: 0, count: 4 });
		await until(() => keeper.held.count === 4, "four experts");
		assign({ layer: 0, first: 2, count: 2 }, { layer: 1, first: 0, count: 1 }, { layer: 9, first: 0, count: 1 });
		await until(() => keeper.held.has(1, 0), "the second wish");
		expect(keeper.held.ranges()).toEqual([
			{ layer: 0, first: 2, count: 2 },
			{ layer: 1, first: 0, count: 1 },
		]);
		await until(() => told.at(-1)?.length === 2, "the backbone to be told");
		expect(told.some((ranges) => ranges.reduce((sum, { count }) => sum + count, 0) === 1)).toBe(true);
	});

	it("fetches the manifest again for an assignment by another one, and drops what that lists otherwise; takes nothing by one it cannot have", async () => {
		const manifest = await manifestOf();
		const swapped = {
			...manifest,
			layers: manifest.layers.map((layer, at) =>
				at === 0 ? { ...layer, slices: layer.slices.with(1, layer.slices[0]!) } : layer,
			),
		};
		const digest = (one: Manifest) => manifestDigest(manifestText(one));
		const unloaded: unknown[] = [];
		const engine = plainEngine();
		const unload = engine.unload.bind(engine);
		Object.assign(engine, {
			unload: (...which: Parameters<typeof unload>) => {
				unloaded.push(which);
				return unload(...which);
			},
		});
		const { keeper, events, shorts, server, assignUnder } = await startScene(
			{ engine },
			{ manifest, others: [swapped] },
		);
		const slicesAsked = () => server.requests.filter(({ url }) => url!.startsWith("/v1/slices/")).length;
		keeper.meet(backbone.publicKey, facts, linked);
		assignUnder(digest(manifest), { layer: 0, first: 0, count: 4 });
		await until(() => keeper.held.count === 4, "four experts");
		const before = slicesAsked();
		unloaded.length = 0;
		assignUnder(digest(swapped), { layer: 0, first: 0, count: 4 });
		await until(() => unloaded.length > 0, "expert 1 to go");
		await until(() => keeper.held.count === 4, "expert 1 to come again");
		expect(new Set(unloaded.map(String))).toEqual(new Set(["0,1"]));
		// As the slice of expert 0, which lies in the cache: nothing else was loaded again.
		expect(slicesAsked()).toBe(before);
		assignUnder(bytes(32, 1), { layer: 1, first: 0, count: 4 });
		await until(() => shorts.length > 0, "the refusal");
		expect(shorts).toEqual(["another manifest"]);
		expect(events.at(-1)).toMatchObject({ event: "problem", code: "model_mismatch" });
		expect(keeper.held.ranges()).toEqual([{ layer: 0, first: 0, count: 4 }]);
	});

	it("drops everything for another model, in the engine too, and what is on its way when that comes", async () => {
		const engine = plainEngine();
		const load = engine.load.bind(engine);
		let goOn: (() => void) | null = null;
		Object.assign(engine, {
			async load(...which: Parameters<typeof load>) {
				if (which[0] === 1) await new Promise<void>((resolve) => (goOn = resolve));
				await load(...which);
			},
		});
		const { keeper, assign, failures } = await startScene({ engine });
		keeper.meet(backbone.publicKey, facts, linked);
		assign({ layer: 0, first: 0, count: 4 });
		await until(() => keeper.held.count === 4, "four experts");
		assign({ layer: 0, first: 0, count: 4 }, { layer: 1, first: 0, count: 1 });
		await until(() => goOn !== null, "the fifth to be loaded");
		keeper.meet(backbone.publicKey, { ...facts, modelId: bytes(32, 77) }, linked);
		expect([keeper.held.count, keeper.modelId]).toEqual([0, bytes(32, 77)]);
		goOn!();
		await until(() => engine.bytesHeld === 0, "the engine to be empty");
		// The new model's manifest is of the old one: that ends it, after the old one's experts.
		await until(() => failures.length === 1, "the end");
		expect([keeper.held.count, engine.bytesHeld]).toEqual([0, 0]);
	});

	it("believes no manifest that another key signed, and none of another geometry", async () => {
		const forged = await startScene({}, { signer: keyPairFromSeed(bytes(32, 5)) });
		forged.keeper.meet(backbone.publicKey, facts, linked);
		await until(() => forged.events.some(({ event }) => event === "problem"), "the refusal");
		expect(forged.events.find(({ event }) => event === "problem")).toMatchObject({ code: "auth" });
		const other = await startScene({}, { manifest: { ...(await manifestOf()), hidden: 32 } });
		other.keeper.meet(backbone.publicKey, facts, linked);
		await until(() => other.failures.length === 1, "the refusal");
		expect(other.failures[0]).toMatchObject({ code: "model_mismatch" });
	});

	it("serves on with what it has when a slice is wrong again and again, and says that it is short", async () => {
		const bad = sliceOf(await model.weights.expert(1, 2));
		const spoil = (slice: Uint8Array) => (Buffer.from(slice).equals(bad) ? slice.slice().fill(9) : slice);
		const { keeper, events, shorts, assign } = await startScene({}, { spoil });
		keeper.meet(backbone.publicKey, facts, linked);
		assign({ layer: 0, first: 0, count: 4 }, { layer: 1, first: 0, count: 4 });
		await until(() => shorts.length > 0, "the shortage");
		expect(events.find(({ event }) => event === "problem")).toMatchObject({
			code: "bad_weights",
			message: expect.stringContaining("expert 2 of layer 1"),
		});
		expect(keeper.held.count).toBeGreaterThanOrEqual(4);
		expect(keeper.held.has(1, 2)).toBe(false);
	});

	it("stays for the next assignment when the backbone, begun again with another file, has a listed slice no more", async () => {
		const old = await manifestOf();
		const gone = {
			...old,
			layers: old.layers.map((layer, at) =>
				at > 0 ? layer : { ...layer, slices: layer.slices.map(() => "0".repeat(64)) },
			),
		};
		const { keeper, events, shorts, failures, assignUnder } = await startScene({}, { manifest: gone, others: [old] });
		keeper.meet(backbone.publicKey, facts, linked);
		const digestOf = (manifest: Manifest) => manifestDigest(manifestText(manifest));
		assignUnder(digestOf(gone), { layer: 0, first: 0, count: 2 });
		await until(() => shorts.length > 0, "the shortage");
		expect(events.findLast(({ event }) => event === "problem")).toMatchObject({ code: "bad_weights" });
		assignUnder(digestOf(old), { layer: 0, first: 0, count: 2 });
		await until(() => keeper.held.count === 2, "the new file's experts");
		expect(failures).toEqual([]);
	});

	it("drops a wish that a successor of its backbone has no model for, and asks anew, by the new name, once there is a link", async () => {
		const { keeper, failures } = await startScene({ hold: () => [{ layer: 0, first: 0, count: 4 }] });
		let looked = false;
		const unlinked = () => {
			looked = true;
			return false;
		};
		keeper.meet(backbone.publicKey, { ...facts, name: "other" }, unlinked);
		await until(() => looked, "the 404");
		keeper.meet(backbone.publicKey, facts, linked);
		await until(() => keeper.held.count === 4, "four experts");
		expect(failures).toEqual([]);
		keeper.meet(backbone.publicKey, { ...facts, name: "other" }, linked);
		await until(() => failures.length === 1, "the end");
		expect(failures[0]).toMatchObject({ code: "model_missing" });
	});

	it("ends with model_mismatch naming the expert where a file is not the backbone's", async () => {
		const manifest = await manifestOf();
		const layers = manifest.layers.map((layer, index) =>
			index === 1 ? { ...layer, slices: layer.slices.with(3, "0".repeat(64)) } : layer,
		);
		const hold = () => [{ layer: 1, first: 0, count: 4 }];
		const { keeper, failures } = await startScene({ model, hold }, { manifest: { ...manifest, layers } });
		await keeper.loadOwn(dims, () => false);
		keeper.meet(backbone.publicKey, facts, linked);
		await until(() => failures.length === 1, "the refusal");
		expect(failures[0]).toMatchObject({ code: "model_mismatch", facts: { layer: 1, expert: 3 } });
	});

	it("has nothing against a file that is the backbone's, and says so where it holds by wish", async () => {
		const { keeper, failures, shorts, assign, server } = await startScene({
			model,
			hold: () => [{ layer: 1, first: 0, count: 4 }],
		});
		await keeper.loadOwn(dims, () => false);
		keeper.meet(backbone.publicKey, facts, linked);
		await until(() => server.requests.length === 1, "the manifest to be asked for");
		assign({ layer: 0, first: 0, count: 1 });
		expect(shorts).toEqual(["holds what its operator said"]);
		expect([failures, keeper.held.count]).toEqual([[], 4]);
	});

	it("takes as much as fits, and says that it is short", async () => {
		const { keeper, shorts, assign } = await startScene({ engine: plainEngine("f32", 3) });
		keeper.meet(backbone.publicKey, facts, linked);
		assign({ layer: 0, first: 0, count: 4 }, { layer: 1, first: 0, count: 4 });
		await until(() => shorts.length > 0, "the shortage");
		expect([keeper.held.count, shorts]).toEqual([3, ["memory is full"]]);
	});
});
