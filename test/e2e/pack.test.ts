import { execFile } from "node:child_process";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { packagePath } from "../../src/io/built.ts";
import { cleanEnv } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";

const run = promisify(execFile);
const installMs = 240_000;

it(
	"the packed file, installed in an empty folder, runs the demo",
	async () => {
		const folder = await temporaryHome();
		const options = { cwd: folder, env: cleanEnv() as NodeJS.ProcessEnv, timeout: installMs, maxBuffer: 1 << 24 };
		// What is packed is what was built: packing builds nothing anew.
		const packed = await run("npm", ["pack", "--ignore-scripts", "--json", packagePath(".")], options);
		const [{ filename, files }] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }];
		const paths = files.map(({ path }) => path);
		expect(paths).toContain("dist/bin/kvasir.js");
		expect(paths).toContain("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
		expect(paths.filter((path) => /^(src|test)\/|\.test\.|^fixtures\/reference/.test(path))).toEqual([]);
		await writeFile(join(folder, "package.json"), '{ "private": true }');
		const quiet = ["--no-audit", "--no-fund", "--prefer-offline", "--onnxruntime-node-install=skip"];
		await run("npm", ["install", `./${filename}`, ...quiet], options);
		const demo = await run("npx", ["kvasir", "demo", "--json"], options);
		expect(JSON.parse(demo.stdout)).toMatchObject({
			ok: true,
			data: { text: expect.stringMatching(/^ Paris\./), verdict: "identical" },
		});
		expect((await readdir(folder)).sort()).toEqual(
			[filename, "node_modules", "package-lock.json", "package.json"].sort(),
		);
	},
	2 * installMs,
);
