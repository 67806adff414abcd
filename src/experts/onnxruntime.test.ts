import { spawn } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { builtUrl, packagePath } from "../io/built.ts";
import { encodeModel } from "../model/onnx/onnx-model.ts";
import { openSession, tensorConstructor } from "./onnxruntime.ts";

const decodeClient = builtUrl(import.meta.url, "../backbone/decode/decode-client.js");
const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");

/** Decodes a token in a thread of a process that knows nothing of telemetry, then tells its real environment. */
const decoding = `
	import { readFileSync } from "node:fs";
	import { openDecodeThread } from ${JSON.stringify(decodeClient.href)};
	const client = await openDecodeThread({ home: "none", model: ${JSON.stringify(tiny)}, engine: "f32" });
	const { tokens } = await client.generate({ prompt: [1], maxTokens: 2, sampling: { temperature: 0 } });
	const loaded = readFileSync("/proc/self/maps", "utf8").includes("libonnxruntime");
	console.log(JSON.stringify({ tokens: tokens.length, variable: process.env.ORT_DISABLE_TELEMETRY, loaded }));
	await client.close();
`;

async function filesBelow(folder: string): Promise<string[]> {
	return readdir(folder, { recursive: true });
}

test.runIf(process.platform === "linux")(
	"decoding in a thread leaves telemetry off: no file in home, cache or temporary folder",
	async () => {
		const home = await temporaryHome();
		const temporary = join(home, "temporary");
		await mkdir(temporary);
		const env = { PATH: process.env.PATH, HOME: home, TMPDIR: temporary, XDG_CACHE_HOME: join(home, "cache") };
		const script = join(await temporaryHome(), "decode.mjs");
		await writeFile(script, decoding);
		const child = spawn(process.execPath, [script], { env, stdio: ["ignore", "pipe", "inherit"] });
		let output = "";
		child.stdout.on("data", (chunk) => {
			output += chunk;
		});
		const exitCode = await new Promise((resolve) => child.once("close", resolve));
		expect(exitCode).toBe(0);
		expect(JSON.parse(output)).toEqual({ tokens: 2, variable: "1", loaded: true });
		expect(await filesBelow(home)).toEqual(["temporary"]);
	},
);

test("a graph onnxruntime refuses is an engine failure in its own words", async () => {
	const values = [{ name: "x", type: "float", dims: ["n"] }] as const;
	const nodes = [{ op: "NoSuchOperator", inputs: ["x"], outputs: ["y"] }];
	const model = encodeModel({ nodes, inputs: values, outputs: [{ ...values[0], name: "y" }], constants: [] });
	await expect(openSession(model)).rejects.toMatchObject({
		code: "engine_failed",
		message: expect.stringContaining("NoSuchOperator"),
	});
});

test("attributes, constants and external constants arrive as written", async () => {
	const x = Float32Array.of(-1, 0.5, 2);
	const model = encodeModel({
		nodes: [
			{ op: "LeakyRelu", inputs: ["x"], outputs: ["a"], attributes: { alpha: { float: 0.25 } } },
			{ op: "Add", inputs: ["a", "near"], outputs: ["b"] },
			{ op: "Mul", inputs: ["b", "far"], outputs: ["c"] },
			{ op: "Transpose", inputs: ["c"], outputs: ["y"], attributes: { perm: { ints: [1, 0] } } },
		],
		inputs: [{ name: "x", type: "float", dims: ["rows", 3] }],
		outputs: [{ name: "y", type: "float", dims: [3, "rows"] }],
		constants: [
			{ name: "near", type: "float", dims: [3], data: Float32Array.of(1, 2, 3) },
			{ name: "far", type: "float", dims: [3], data: Float32Array.of(10, 100, 1000), external: true },
		],
	});
	expect(model.externalData.map(({ path }) => path)).toEqual(["far"]);
	const session = await openSession(model);
	const Tensor = await tensorConstructor();
	const { y } = await session.run({ x: new Tensor("float32", x, [1, 3]) });
	expect(y!.dims).toEqual([3, 1]);
	expect([...(y!.data as Float32Array)]).toEqual([7.5, 250, 5000]);
	await session.release();
});
