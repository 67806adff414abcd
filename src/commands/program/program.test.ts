import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { memoryHost } from "../../../test/support/memory-host.ts";
import { temporaryHome } from "../../../test/support/temporary-home.ts";
import { exitCodes } from "../../errors.ts";
import { catalog } from "../catalog.ts";
import { flagName } from "./options.ts";
import { runProgram } from "./program.ts";

async function run(argv: string[], env: Record<string, string> = {}) {
	const host = memoryHost(argv, { env });
	const code = await runProgram(host);
	return { code, out: host.out(), err: host.err() };
}

describe("runProgram()", () => {
	it("lists every command without loading one", async () => {
		const { code, out } = await run(["--help"]);
		expect(code).toBe(0);
		for (const { path } of catalog) expect(out).toContain(path.split(" ")[0]);
	});

	it("prints the version", async () => {
		expect((await run(["--version"])).out).toMatch(/^\d+\.\d+\.\d+\n$/);
	});

	it.each([
		[["modle"], 'Did you mean "model"?'],
		[["model", "lst"], 'Did you mean "list"?'],
		[["model"], "Commands: add, list, inspect"],
		[["config", "show", "--orgin"], "Did you mean --origin?"],
		[["model", "inspect"], "kvasir <command> --help"],
		[["demo", "--tokens", "--prompt"], "--tokens: tokens to generate"],
		[["config", "show", "--log-level", "loud"], "--log-level: error, warn, info or debug"],
	])("refuses %j as usage, with a hint", async (argv, hint) => {
		const text = await run(argv);
		expect(text).toMatchObject({ code: exitCodes.usage, out: "" });
		expect(text.err).toContain(hint);
		const json = await run([...argv, "--json"]);
		expect(json).toMatchObject({ code: exitCodes.usage, err: "" });
		const envelope = JSON.parse(json.out);
		expect(envelope).toMatchObject({ ok: false, error: { code: "usage" } });
		expect(envelope.error.hint).toContain(hint);
	});

	it("takes a setting from the flag, then the environment, then kvasir.toml, then the default", async () => {
		const home = await temporaryHome();
		const origin = async (argv: string[], env: Record<string, string>) => {
			const { out } = await run(["config", "show", "--json", "--home", home, ...argv], env);
			const settings = JSON.parse(out).data.settings as {
				section: string;
				key: string;
				origin: string;
				value: unknown;
			}[];
			const found = settings.find(({ section, key }) => section === "config" && key === "origin")!;
			return [found.origin, found.value];
		};
		expect(await origin([], {})).toEqual(["default", false]);
		await writeFile(join(home, "kvasir.toml"), "[config]\norigin = true\n");
		expect(await origin([], {})).toEqual(["kvasir.toml", true]);
		expect(await origin([], { KVASIR_CONFIG_ORIGIN: "false" })).toEqual(["KVASIR_CONFIG_ORIGIN", false]);
	});

	it("prints one envelope where --json stands in the place of a value", async () => {
		const { code, out } = await run(["demo", "--tokens", "--json"]);
		expect(code).toBe(exitCodes.usage);
		expect(JSON.parse(out).error.message).toContain("--tokens <n> has no value");
	});

	it("prints one envelope for --json asked for by the environment", async () => {
		const { out } = await run(["nonsense"], { KVASIR_JSON: "1" });
		expect(JSON.parse(out)).toMatchObject({ ok: false, error: { code: "usage" } });
	});
});

describe("every command", () => {
	it.each(catalog.map((entry) => [entry.path, entry] as const))(
		"%s declares itself and shows an example",
		async (path, entry) => {
			const spec = await entry.load();
			expect({ path: spec.path, summary: spec.summary }).toEqual({ path, summary: entry.summary });
			const { code, out } = await run([...path.split(" "), "--help"]);
			expect(code).toBe(0);
			expect(out).toContain("Example:");
			expect(spec.example).toContain(`kvasir ${path}`);
			for (const option of Object.values(spec.options)) expect(out).toContain(`--${flagName(option)}`);
			expect(out).toMatchSnapshot();
		},
	);

	it("never has one setting declared twice in different ways", async () => {
		const seen = new Map<string, string>();
		for (const { load } of catalog) {
			const { section, options } = await load();
			for (const option of Object.values(options)) {
				const key = `${section}.${flagName(option)}`;
				const shape = `${option.kind} ${option.reader.expected}`;
				expect(`${key} ${seen.get(key) ?? shape}`).toBe(`${key} ${shape}`);
				seen.set(key, shape);
			}
		}
	});
});
