import { describe, expect, it } from "vitest";
import { adapterId, adapterIds, hasDevice } from "../support/device.ts";
import { runCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";

/** Nobody listens there: the engine is opened before anything is dialled. */
const nowhere = "ws://127.0.0.1:9";
const noDrivers = { VK_DRIVER_FILES: "/nonexistent", VK_ICD_FILENAMES: "/nonexistent", LD_LIBRARY_PATH: "" };
const slowMs = 300_000;

async function refusedJoin(args: readonly string[], env: Record<string, string> = {}) {
	const startMs = performance.now();
	const { code, lines } = await runCli(["join", nowhere, "--home", await temporaryHome(), "--json", ...args], { env });
	const error = lines().at(-1)!.error as { code: string; message: string; hint: string };
	return { code, error, ms: performance.now() - startMs };
}

describe("kvasir join --gpu", () => {
	it("ends with exit code 7 in a few seconds where there is no adapter, and says what was tried", async () => {
		const { code, error, ms } = await refusedJoin(["--gpu"], noDrivers);
		expect(code).toBe(7);
		expect(error).toMatchObject({ code: "gpu_unavailable", message: expect.stringContaining("webgpu: no adapter") });
		expect(error.hint).toContain("--gpu=webgpu:ID");
		expect(ms).toBeLessThan(10_000);
	});

	it.skipIf(!hasDevice || !/swiftshader|llvmpipe/.test(adapterId))(
		"refuses an adapter that computes on the CPU unless it is named",
		async () => {
			const { code, error } = await refusedJoin(["--gpu=auto"]);
			expect(code).toBe(7);
			expect(error.message).toContain(`webgpu:${adapterId}`);
			expect(error.message).toContain("used only when named");
		},
	);

	it("names the adapters that are there when another is asked for", async () => {
		const { code, error } = await refusedJoin(["--gpu=webgpu:vulkan-no-such-card"], noDrivers);
		expect(code).toBe(7);
		expect(error.message).toContain("webgpu:vulkan-no-such-card: not there; there is: none");
	});

	it("gives a provider's own error, and how to get its libraries", async () => {
		const { code, error } = await refusedJoin(["--gpu=cuda", "--engine", "onnx", "--model", "tiny"]);
		expect(code).toBe(7);
		expect(error.message).toContain("Failed to load shared library");
		expect(error.message).toContain("kvasir gpu install-cuda");
	});

	it.each([
		["cuda with the canonical engine", ["--gpu=cuda"], "--engine onnx"],
		["a device nobody knows", ["--gpu=opencl"], "auto, webgpu"],
		["the engine f32", ["--gpu", "--engine", "f32"], "canonical and onnx"],
	])("is a usage error with %s", async (_, args, said) => {
		const { code, error } = await refusedJoin(args);
		expect(code).toBe(2);
		expect(`${error.message} ${error.hint}`).toContain(said);
	});
});

describe.skipIf(!hasDevice)("kvasir verify with a worker on a GPU", { timeout: slowMs }, () => {
	/** onnxruntime takes the first adapter, which may be a slow one. */
	const oneLayer = ["--layers", "3", "--tokens", "1"];
	const verify = async (workers: readonly string[], ...args: string[]) => {
		const kinds = workers.flatMap((kind) => ["--worker", kind]);
		const layers = args.includes("--layers") ? [] : ["--layers", "0,3", "--tokens", "2"];
		const small = ["--prompt", "Hi", "--wait", "240", ...layers];
		const home = ["--home", await temporaryHome(), "--json"];
		const { code, json } = await runCli(["verify", ...kinds, ...small, ...home, ...args], { deadlineMs: slowMs });
		return { code, data: json().data };
	};

	it("is identical, strictly, with one WASM and one GPU worker", async () => {
		const { code, data } = await verify(["cpu", `gpu=${adapterId}`], "--strict");
		expect(data).toMatchObject({ verdict: "identical", logits: { identical: true } });
		expect(data.partials.identical).toBe(data.partials.pairs);
		for (const worker of data.remote.workers) {
			expect(worker.class).toBe("canonical-1");
			expect(worker.pairs).toBeGreaterThan(0);
		}
		expect(code).toBe(0);
	});

	it("is equivalent, never identical, with a worker of onnxruntime's WebGPU provider", async () => {
		const { code, data } = await verify(["cpu", `onnx-gpu=${adapterIds[0]}`], ...oneLayer);
		expect(data.verdict).toBe("equivalent");
		expect(data.remote.workers.map((worker: { class: string }) => worker.class.split(":")[2]).sort()).toEqual([
			"webgpu",
			undefined,
		]);
		expect(code).toBe(0);
	});
});
