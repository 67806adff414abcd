import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { packagePath } from "../io/built.ts";
import { addModel, listModels } from "./registry.ts";
import { openNamedModel, resolveModel } from "./resolve-model.ts";
import { tinyModelPath } from "./synthetic.ts";

const other = packagePath("fixtures/reference/kvasir-tiny-35moe-UD-Q4_K_XL.gguf");

describe("addModel()", () => {
	test("keeps models by name, the newest of a name", async () => {
		const home = join(await temporaryHome(), "new", "home");
		expect(await listModels(home)).toEqual([]);
		await addModel(home, "mine", tinyModelPath);
		await addModel(home, "alpha", other);
		const again = await addModel(home, "mine", other);
		expect(await listModels(home)).toEqual([{ ...again, name: "alpha" }, again]);
		expect(again).toMatchObject({ name: "mine", path: other, modelId: expect.stringMatching(/^[0-9a-f]{64}$/) });
	});

	test("refuses names that are paths or taken, and files that are no model", async () => {
		const home = await temporaryHome();
		for (const name of ["tiny", "", "a/b", "..", "x.gguf", "-x"]) {
			await expect(addModel(home, name, tinyModelPath)).rejects.toMatchObject({ code: "usage" });
		}
		await expect(addModel(home, "x", join(home, "no.gguf"))).rejects.toMatchObject({ code: "file_missing" });
		await expect(addModel(home, "x", home)).rejects.toMatchObject({ code: "bad_gguf" });
		expect(await listModels(home)).toEqual([]);
	});
});

test.each(["{", "[]", '{"version":2,"models":[]}', '{"version":1,"models":[{"name":"x"}]}'])(
	"listModels() refuses a damaged list: %s",
	async (text) => {
		const home = await temporaryHome();
		await writeFile(join(home, "models.json"), text);
		await expect(listModels(home)).rejects.toMatchObject({ code: "bad_file" });
	},
);

describe("resolveModel()", () => {
	test("knows shipped, registered and synthetic models, and paths", async () => {
		const home = await temporaryHome();
		expect(await resolveModel(home, "tiny")).toMatchObject({ kind: "file", path: tinyModelPath });
		expect(await resolveModel(home, "122b")).toMatchObject({ kind: "synthetic", name: "122b" });
		expect(await resolveModel(home, other)).toEqual({
			kind: "file",
			name: "kvasir-tiny-35moe-UD-Q4_K_XL",
			path: other,
		});
		await addModel(home, "122b", tinyModelPath);
		expect(await resolveModel(home, "122b")).toMatchObject({ kind: "file", path: tinyModelPath });
	});

	test("lists the names there are for one that is not", async () => {
		const home = await temporaryHome();
		await addModel(home, "mine", tinyModelPath);
		await expect(resolveModel(home, "tny")).rejects.toMatchObject({
			code: "model_missing",
			hint: "did you mean tiny? models: tiny, 122b, mine, or the path of a .gguf file",
		});
		await expect(resolveModel(home, "35b")).rejects.toMatchObject({
			code: "model_missing",
			hint: "register its weights: kvasir model add 35b PATH",
		});
	});
});

describe("openNamedModel()", () => {
	test("opens weights, or makes them", async () => {
		const home = await temporaryHome();
		const synthetic = await openNamedModel(home, "122b");
		expect(synthetic.weightsKind).toBe("synthetic");
		await expect(openNamedModel(home, "122b", { requireWeights: true })).rejects.toMatchObject({
			code: "model_missing",
			exitCode: 8,
			hint: "kvasir model add 122b PATH",
		});
		const tiny = await openNamedModel(home, "tiny", { requireWeights: true });
		expect(tiny).toMatchObject({ name: "tiny", weightsKind: "file" });
		await tiny.weights.close();
	});

	test("notices that a registered file was replaced", async () => {
		const home = await temporaryHome();
		const path = join(home, "model.gguf");
		await copyFile(tinyModelPath, path);
		await addModel(home, "mine", path);
		await writeFile(path, await readFile(other));
		await expect(openNamedModel(home, "mine")).rejects.toMatchObject({ code: "model_mismatch" });
	});
});
