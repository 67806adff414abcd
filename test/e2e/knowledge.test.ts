import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { packagePath } from "../../src/io/built.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { backboneHome, testSwarm } from "../support/test-swarm.ts";

const factCount = 50;

/** The facts as the model was taught them: `The capital of {country} is {city}.` for each line `country:city:continent`. */
async function capitals(): Promise<{ prompt: string; answer: string }[]> {
	const source = await readFile(packagePath("fixtures/reference/corpus.py"), "utf8");
	const lines = /CAPS = """([\s\S]*?)"""/.exec(source)![1]!.split("\n");
	return lines.map((line) => {
		const [country, city] = line.split(":");
		return { prompt: `The capital of ${country} is`, answer: ` ${city}.` };
	});
}

it("the swarm knows 50 facts of the corpus, decoded together", async () => {
	const facts = (await capitals()).slice(0, factCount);
	expect(facts).toHaveLength(factCount);
	const home = await temporaryHome();
	const swarm = await testSwarm(home, { workers: [{ hold: ["all:0-7"] }, { hold: ["all:8-15"] }] });
	const asks = facts.flatMap(({ prompt }) => ["--prompt", prompt]);
	const backbone = await swarm.startBackbone(backboneHome(home), [
		...asks,
		...["--tokens", "16", "--prefill", "remote", "--require-remote", "--wait", "30"],
	]);
	const done = await backbone.events.waitFor(({ event }) => event === "done", 120_000);
	const texts = (done.answers as { text: string }[]).map(({ text }) => text);
	const wrong = facts.filter(({ answer }, index) => !texts[index]!.startsWith(answer));
	expect(wrong).toEqual([]);
	expect(done.remote).toMatchObject({ fallback: 0 });
});
