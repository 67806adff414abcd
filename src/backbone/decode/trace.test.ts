import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { openF32Engine } from "../../experts/f32/f32-engine.ts";
import { openF32Matrices } from "../../experts/f32/f32-matrices.ts";
import { packagePath } from "../../io/built.ts";
import { systemClock } from "../../io/clock.ts";
import { openModel } from "../../model/open-model.ts";
import { loadExpertBlock } from "./expert-block.ts";
import { LocalExperts } from "./local-experts.ts";
import { route } from "./router.ts";
import type { Sequence } from "./sequence.ts";
import { layOutStep } from "./step.ts";
import { Stopwatch } from "./step-times.ts";

const folder = "fixtures/reference/trace-Q4_K_M";

interface TraceLayer {
	readonly moeInput: string;
	readonly routedSum: string;
	readonly sharedGated: string;
	readonly experts: number[][];
	readonly weights: number[][];
}

async function floats(name: string): Promise<Float32Array> {
	const bytes = await readFile(packagePath(`${folder}/${name}`));
	return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

test("every expert block of the traced prompt: the same experts, weights and sums", async () => {
	const trace = JSON.parse(await readFile(packagePath(`${folder}/index.json`), "utf8"));
	const layers: TraceLayer[] = trace.layers;
	const model = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	const { experts: expertCount, topK, hidden } = model.shape;
	const engine = await openF32Engine({ hidden });
	const matrices = await openF32Matrices();
	const parts = { local: new LocalExperts(model, engine), remote: null, stopwatch: new Stopwatch(systemClock) };
	const tokens: number[] = trace.tokens;
	const step = layOutStep([
		{ sequence: { id: 1, length: 0 } as Sequence, tokens, wantLogits: "none", phase: "prefill" },
	]);
	for (const [index, layer] of layers.entries()) {
		const rows = await floats(layer.moeInput);
		const router = await matrices.group("router", [await model.weights.matrix(`blk.${index}.ffn_gate_inp.weight`)]);
		const [logits] = await router.multiply(rows, tokens.length);
		const routes = route(logits!, tokens.length, expertCount, topK);
		expect([...routes.expert]).toEqual(layer.experts.flat());
		for (const [i, weight] of layer.weights.flat().entries()) expect(routes.weight[i]).toBeCloseTo(weight, 6);
		const block = await loadExpertBlock(model, index, matrices, parts);
		const sum = new Float32Array(rows.length);
		await block.addTo(sum, rows, step);
		const [routed, shared] = [await floats(layer.routedSum), await floats(layer.sharedGated)];
		const scale = sum.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
		const off = sum.map((value, i) => Math.abs(value - (routed[i]! + shared[i]!)));
		expect(off.reduce((most, value) => Math.max(most, value), 0) / scale).toBeLessThan(3e-6);
		await block.close();
		await router.close();
	}
	await engine.close();
	await model.weights.close();
});
