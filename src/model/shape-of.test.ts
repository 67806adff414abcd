import { beforeAll, describe, expect, test } from "vitest";
import { packagePath } from "../io/built.ts";
import { geometries, geometryOf } from "./geometries.ts";
import { openGguf } from "./gguf.ts";
import type { TensorInfo } from "./gguf-header.ts";
import { shapeMetadata } from "./shape-metadata.ts";
import { shapeOf } from "./shape-of.ts";
import { checkTensors } from "./tensor-plan.ts";

let metadata: ReadonlyMap<string, unknown>;
let tensors: ReadonlyMap<string, TensorInfo>;
beforeAll(async () => {
	const gguf = await openGguf(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
	({ metadata, tensors } = gguf);
	await gguf.close();
});

const changed = (key: string, value: unknown) => new Map([...metadata, [key, value]]);

describe("shapeOf()", () => {
	test("does not count MTP blocks, and knows explicit recurrent layers", () => {
		const five = new Map([...metadata, ["qwen35moe.block_count", 5], ["qwen35moe.nextn_predict_layers", 1]]);
		expect(shapeOf(five, tensors).fullAttention).toEqual([false, false, false, true]);
		const listed = changed("qwen35moe.attention.recurrent_layers", [true, false, true, false, true]);
		expect(shapeOf(listed, tensors).fullAttention).toEqual([false, true, false, true]);
		const perLayer = changed("qwen35moe.attention.head_count_kv", [0, 0, 0, 2]);
		expect(shapeOf(perLayer, tensors).attention.kvHeads).toBe(2);
	});

	test.each([
		["general.architecture", "llama", "unsupported_architecture"],
		["general.architecture", undefined, "unsupported_architecture"],
		["qwen35moe.block_count", 0, "unsupported_shape"],
		["qwen35moe.block_count", 2 ** 30, "unsupported_shape"],
		["qwen35moe.nextn_predict_layers", 4, "unsupported_shape"],
		["qwen35moe.embedding_length", "256", "unsupported_shape"],
		["qwen35moe.expert_used_count", 17, "unsupported_shape"],
		["qwen35moe.expert_count", 65_536, "unsupported_shape"],
		["qwen35moe.attention.head_count", 5, "unsupported_shape"],
		["qwen35moe.attention.head_count_kv", [0, 1, 0, 2], "unsupported_shape"],
		["qwen35moe.attention.value_length", 32, "unsupported_shape"],
		["qwen35moe.attention.layer_norm_rms_epsilon", 0, "unsupported_shape"],
		["qwen35moe.attention.recurrent_layers", [true], "unsupported_shape"],
		["qwen35moe.rope.dimension_count", 66, "unsupported_shape"],
		["qwen35moe.rope.dimension_count", 15, "unsupported_shape"],
		["qwen35moe.rope.freq_base", Number.NaN, "unsupported_shape"],
		["qwen35moe.rope.scaling.type", "yarn", "unsupported_shape"],
		["qwen35moe.ssm.inner_size", 255, "unsupported_shape"],
		["qwen35moe.ssm.time_step_rank", 3, "unsupported_shape"],
		["qwen35moe.ssm.conv_kernel", -1, "unsupported_shape"],
		["tokenizer.ggml.tokens", Array.from({ length: 513 }, String), "unsupported_shape"],
	])("refuses %s = %j", (key, value, code) => {
		expect(() => shapeOf(changed(key, value), tensors)).toThrow(expect.objectContaining({ code }));
	});

	test.each(geometries)("reads back what shapeMetadata() writes: $name", ({ name, shape }) => {
		const tokens = Array.from({ length: shape.vocab }, () => "");
		expect(shapeOf(new Map([...shapeMetadata(shape), ["tokenizer.ggml.tokens", tokens]]), new Map())).toEqual(shape);
		expect(geometryOf({ ...shape, layers: 1 })?.name).toBe(name);
	});
});

describe("checkTensors() names", () => {
	const outcome = (change: (copy: Map<string, TensorInfo>) => void) => {
		const copy = new Map(tensors);
		change(copy);
		return () => checkTensors(shapeOf(metadata, tensors), copy);
	};
	const down = "blk.2.ffn_down_exps.weight";

	test("a missing tensor", () => {
		expect(outcome(() => {})).not.toThrow();
		expect(outcome((copy) => copy.delete("output.weight"))).not.toThrow();
		expect(outcome((copy) => copy.delete(down))).toThrow(`tensor ${down} is missing`);
	});

	test("a type Kvasir does not compute with", () => {
		const mxfp4 = outcome((copy) => copy.set(down, { ...copy.get(down)!, ggmlType: 39 }));
		expect(mxfp4).toThrow(
			expect.objectContaining({ code: "unsupported_type", facts: { tensor: down, type: "MXFP4" } }),
		);
		const unknown = outcome((copy) => copy.set(down, { ...copy.get(down)!, ggmlType: 77 }));
		expect(unknown).toThrow("type 77");
	});

	test("another shape", () => {
		const swapped = outcome((copy) => copy.set(down, { ...copy.get(down)!, ne: [256, 256, 15] }));
		expect(swapped).toThrow(`tensor ${down} is 256 x 256 x 15, not 256 x 256 x 16`);
	});
});
