import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import type { EngineName } from "../experts/open-engine.ts";
import { packagePath } from "../io/built.ts";
import { systemClock } from "../io/clock.ts";
import { verifyReference } from "./reference.ts";

const tiny = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
const recorded = (name: string) => packagePath(`fixtures/reference/${name}`);

async function verify(model: string, referencePath: string, engine: EngineName = "f32") {
	const settings = { home: await temporaryHome(), model, engine };
	return verifyReference({ settings, referencePath, clock: systemClock });
}

test.each([
	["Q4_K_M", tiny, "oracle-Q4_K_M-dequantF32.json", 492, 641],
	["UD-Q4_K_XL", recorded("kvasir-tiny-35moe-UD-Q4_K_XL.gguf"), "oracle-UD-Q4_K_XL-dequantF32.json", 492, 641],
	["long prompts", tiny, "oracle-long-Q4_K_M-dequantF32.json", 33, 520],
])("the local f32 run equals llama.cpp's recorded logits: %s", async (_, model, oracle, steps, positions) => {
	const report = await verify(model, recorded(oracle));
	expect(report.tokens).toMatchObject({ same: steps, total: steps });
	expect(report.argmax).toEqual({ same: positions, total: positions });
	expect(report.logits.maxAbs).toBeLessThanOrEqual(1e-3);
	expect(report.logits.cosineMin).toBeGreaterThanOrEqual(0.999999);
	expect(report.logits.klMax).toBeLessThan(1e-6);
	expect(report.firstDivergence).toBeNull();
	expect(report.verdict).toBe("equivalent");
});

test("with all matrices canonical every token is the same and logits stay within numerics.md's bars", async () => {
	const report = await verify(tiny, recorded("oracle-Q4_K_M-dequantF32.json"), "canonical");
	expect(report.tokens).toMatchObject({ same: 492, total: 492 });
	expect(report.argmax).toEqual({ same: 641, total: 641 });
	expect(report.logits.cosineMin).toBeGreaterThanOrEqual(0.999999);
	expect(report.logits.cosineMedian).toBeGreaterThanOrEqual(1 - 1e-7);
	expect(report.logits.maxAbs).toBeLessThanOrEqual(0.1);
});

test("the native run of llama.cpp, whose activations are int8, has the same tokens and is equivalent", async () => {
	const report = await verify(tiny, recorded("oracle-Q4_K_M.json"));
	expect(report.tokens).toMatchObject({ same: 492, total: 492 });
	expect(report.tokens.text).toMatch(/^ Paris\./);
	expect(report.verdict).toBe("equivalent");
	expect(report.logits.maxAbs).toBeGreaterThan(1e-3);
});

test("a recorded row with another largest logit is different, and the report says where", async () => {
	const home = await temporaryHome();
	const path = join(home, "spoiled.json");
	const oracle = JSON.parse(await readFile(recorded("oracle-Q4_K_M-dequantF32.json"), "utf8"));
	const prompts = oracle.prompts.slice(0, 1).map((prompt: { tokens: number[] }) => ({
		...prompt,
		tokens: prompt.tokens.slice(0, 4),
	}));
	const logitRows = oracle.logitRows.slice(0, 4); // steps 0 to 3 of the first prompt
	const logits = await readFile(recorded(oracle.logitsFile));
	const rows = new Float32Array(logits.buffer.slice(logits.byteOffset, logits.byteOffset + 4 * 512 * 4));
	rows[2 * 512 + 99] = 1e3;
	await writeFile(path, JSON.stringify({ ...oracle, prompts, logitRows }));
	await writeFile(join(home, oracle.logitsFile), new Uint8Array(rows.buffer));
	const report = await verify(tiny, path);
	expect(report.verdict).toBe("different");
	expect(report.tokens).toMatchObject({ same: 4, total: 4 });
	expect(report.argmax).toEqual({ same: 3, total: 4 });
	const position = prompts[0].promptTokens.length - 1 + 2;
	expect(report.firstDivergence).toMatchObject({ prompt: "france", position, remote: 1e3, layer: null });
});

test("a recording that does not fit is refused before anything is decoded", async () => {
	const home = await temporaryHome();
	const path = join(home, "cut.json");
	const oracle = JSON.parse(await readFile(recorded("oracle-Q4_K_M-dequantF32.json"), "utf8"));
	await cp(recorded("oracle-Q4_K_M-dequantF32.logits.f32"), join(home, oracle.logitsFile));
	await writeFile(path, JSON.stringify({ ...oracle, logitRows: oracle.logitRows.slice(1) }));
	await expect(verify(tiny, path)).rejects.toMatchObject({ code: "bad_file", message: expect.stringMatching(/rows/) });
	await writeFile(path, JSON.stringify({ ...oracle, prompts: "none" }));
	await expect(verify(tiny, path)).rejects.toMatchObject({ code: "bad_file" });
	await expect(verify(tiny, join(home, "absent.json"))).rejects.toMatchObject({ code: "file_missing" });
});
