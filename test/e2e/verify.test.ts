import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { packagePath } from "../../src/io/built.ts";
import { runCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { backboneHome, testSwarm } from "../support/test-swarm.ts";
import { until } from "../support/until.ts";

const reference = (name: string) => packagePath(`fixtures/reference/${name}`);
const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");

describe("kvasir verify", () => {
	it("is identical with all layers remote and the experts over three workers", async () => {
		const folder = await temporaryHome();
		const junit = join(folder, "verify.xml");
		const summary = join(folder, "summary.md");
		const args = ["verify", "--model", "tiny", "--workers", "3", "--layers", "all", "--json", "--junit", junit];
		const { code, json } = await runCli(args, { env: { GITHUB_STEP_SUMMARY: summary }, deadlineMs: 90_000 });
		const { ok, data } = json();
		expect({ code, ok }).toEqual({ code: 0, ok: true });
		const positions = 7 + 7;
		const pairs = positions * 4 * 4;
		expect(data.remote).toMatchObject({ layers: [0, 1, 2, 3], asked: pairs, answered: pairs, fallback: 0 });
		expect(data.remote.workers).toHaveLength(3);
		expect(data).toMatchObject({
			model: { name: "tiny", weights: "file", layers: 4, experts: 16, topK: 4, hidden: 256 },
			tokens: { same: 8, total: 8, text: expect.stringMatching(/^ Paris\./) },
			argmax: { same: positions, total: positions },
			logits: { identical: true, maxAbs: 0 },
			partials: { pairs, identical: pairs, worst: 0 },
			firstDivergence: null,
			served: { pairs, bytes: pairs * 256 * 4, nano: String(pairs * 256 * 4 * 7) },
			verdict: "identical",
		});
		expect(await readFile(junit, "utf8")).toContain('failures="0"');
		expect(await readFile(summary, "utf8")).toContain("kvasir verify: identical");
	});

	it("exits 3 when a worker answers wrongly, and names layer, expert and worker", async () => {
		const env = { NODE_ENV: "test", KVASIR_TEST_CORRUPT: "2:9" };
		const args = ["verify", "--workers", "3", "--json"];
		const { code, json } = await runCli(args, { env, deadlineMs: 90_000 });
		const { ok, data } = json();
		expect({ code, ok, verdict: data.verdict }).toEqual({ code: 3, ok: true, verdict: "different" });
		const { layer, expert, worker } = data.firstDivergence;
		expect({ layer, expert }).toEqual({ layer: 2, expert: 9 });
		expect(data.remote.workers.map(({ key }: { key: string }) => key)).toContain(worker);
	});

	it("has no such hook outside of tests", async () => {
		const args = ["verify", "--workers", "1", "--tokens", "1", "--json"];
		const { code, json } = await runCli(args, { env: { KVASIR_TEST_CORRUPT: "2:9" }, deadlineMs: 90_000 });
		expect({ code, verdict: json().data.verdict }).toEqual({ code: 0, verdict: "identical" });
	});

	it("can make some layers remote, and says usage for a layer there is not", async () => {
		const some = await runCli(["verify", "--workers", "1", "--layers", "1,3", "--tokens", "2", "--json"], {
			deadlineMs: 90_000,
		});
		expect(some.json().data).toMatchObject({ remote: { layers: [1, 3], asked: 8 * 2 * 4 }, verdict: "identical" });
		const none = await runCli(["verify", "--workers", "1", "--layers", "7", "--json"], { deadlineMs: 90_000 });
		expect({ code: none.code, error: none.json().error?.code }).toEqual({ code: 2, error: "usage" });
	});
});

describe("kvasir verify --hub", () => {
	it("uses the workers of a hub that lists the home's key, and the work is paid", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home, { workers: [{ hold: ["all:0-7"] }, { hold: ["all:8-15"] }] });
		const args = ["verify", "--hub", swarm.hubRelay, "--home", backboneHome(home), "--tokens", "4", "--json"];
		const { code, json } = await runCli(args, { deadlineMs: 120_000 });
		const { data } = json();
		expect({ code, verdict: data.verdict }).toEqual({ code: 0, verdict: "identical" });
		expect(data.remote.workers).toHaveLength(2);
		const { payout, worker } = swarm.workers[0]!.listening;
		const { pairs } = data.remote.workers.find(({ key }: { key: string }) => key === worker);
		let pending = "0";
		await until(async () => {
			const balance = await runCli([
				"wallet",
				"balance",
				String(payout),
				"--gateway",
				swarm.gatewayUrl,
				"--home",
				home,
				"--json",
			]);
			pending = balance.json().data.nano.pending;
			return pending !== "0";
		}, "the credit");
		expect(pending).toBe(String(pairs * 256 * 4 * 7));
	});
});

describe("kvasir verify --reference", () => {
	it.each([
		["Q4_K_M", tiny, "oracle-Q4_K_M-dequantF32.json", 492, 641],
		["UD-Q4_K_XL", reference("kvasir-tiny-35moe-UD-Q4_K_XL.gguf"), "oracle-UD-Q4_K_XL-dequantF32.json", 492, 641],
		["long prompts", tiny, "oracle-long-Q4_K_M-dequantF32.json", 33, 520],
	])("%s equals what llama.cpp recorded", async (_name, model, recorded, tokens, positions) => {
		const args = ["verify", "--model", model, "--reference", reference(recorded), "--engine", "f32", "--json"];
		const { code, json } = await runCli(args, { deadlineMs: 120_000 });
		const { data } = json();
		expect(code).toBe(0);
		expect(data).toMatchObject({
			tokens: { same: tokens, total: tokens },
			argmax: { same: positions, total: positions },
			remote: { layers: [], asked: 0, answered: 0, fallback: 0 },
			verdict: "equivalent",
		});
		expect(data.logits.maxAbs).toBeLessThan(1e-3);
		expect(data.logits.cosineMin).toBeGreaterThanOrEqual(0.999999);
	});

	it("exits 3 for the recording of another model", async () => {
		const model = reference("kvasir-tiny-35moe-UD-Q4_K_XL.gguf");
		const other = await runCli(["verify", "--model", model, "--reference", reference("oracle-Q4_K_M.json"), "--json"], {
			deadlineMs: 120_000,
		});
		expect(other.json().data.logits.maxAbs).toBeGreaterThan(1e-3);
	});
});
