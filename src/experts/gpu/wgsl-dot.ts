import type { TensorType } from "../../model/weight-matrix.ts";
import { floatWgsl } from "./wgsl-float.ts";

/** Rows of one job that a workgroup multiplies at once. */
export const rowsPerJob = 8;
/** Outputs of a workgroup: eight threads share one (block types), four do (float types). */
export const outputsPerGroup = { block: 8, float: 16 } as const;

/**
 * What differs between the block types. `words`: 32-bit words of a block on the device (the file's block, padded to a whole word);
 * `span`: weights of a block; `read`: thread j unpacks its 32 weights of the super-block into `w` (eight words of four bytes) and sets
 * `scale`, `minimum`; `integers`: its exact share of the sums; `tail`: numerics.md's float steps of one super-block.
 */
interface BlockWgsl {
	readonly words: number;
	readonly span: 32 | 256;
	readonly read: string;
	readonly integers: string;
	readonly tail: string;
}

const sixBitScales = /* wgsl */ `
fn byte_at(word: u32, index: u32) -> u32 { return (weights[word + (index >> 2u)] >> ((index & 3u) * 8u)) & 255u; }
// Scale and minimum of sub-block j: 6 bits each, packed in 12 bytes.
fn scale_and_minimum(word: u32, j: u32) -> vec2<i32> {
  if (j < 4u) { return vec2<i32>(i32(byte_at(word, j) & 63u), i32(byte_at(word, j + 4u) & 63u)); }
  let both = byte_at(word, j + 4u);
  return vec2<i32>(i32((both & 15u) | ((byte_at(word, j - 4u) >> 6u) << 4u)), i32((both >> 4u) | ((byte_at(word, j) >> 6u) << 4u)));
}
`;

const dot32 = "dot += dot4(w[i], row_tile[r * 64u + j * 8u + i]);";
const scaledPair = `
    var dot = 0;
    for (var i = 0u; i < 8u; i = i + 1u) { ${dot32} }
    let s = sum_tile[r * 16u + j * 2u] + sum_tile[r * 16u + j * 2u + 1u];
    partial[r * 64u + lane] = vec2<i32>(scale.x * dot, scale.y * s);`;

const blockTypes: Readonly<Record<"Q4_K" | "Q5_K" | "Q6_K" | "Q8_0", BlockWgsl>> = {
	Q4_K: {
		words: 36,
		span: 256,
		read: `
    scale = scale_and_minimum(at + 1u, j);
    for (var i = 0u; i < 8u; i = i + 1u) { w[i] = (weights[at + 4u + (j >> 1u) * 8u + i] >> ((j & 1u) * 4u)) & 0x0f0f0f0fu; }`,
		integers: scaledPair,
		tail: `
      var total = vec2<i32>(0, 0);
      for (var k = 0u; k < 8u; k = k + 1u) { total = total + partial[r * 64u + n * 8u + k]; }
      let both = weights[at];
      let t = f_sub(f_mul(widen_half(both & 0xffffu), f_from_int(total.x)), f_mul(widen_half(both >> 16u), f_from_int(total.y)));
      acc = f_add(acc, f_mul(s, t));`,
	},
	Q5_K: {
		words: 44,
		span: 256,
		read: `
    scale = scale_and_minimum(at + 1u, j);
    for (var i = 0u; i < 8u; i = i + 1u) {
      let low = (weights[at + 12u + (j >> 1u) * 8u + i] >> ((j & 1u) * 4u)) & 0x0f0f0f0fu;
      w[i] = low | (((weights[at + 4u + i] >> j) & 0x01010101u) << 4u);
    }`,
		integers: scaledPair,
		tail: `
      var lower = vec2<i32>(0, 0);
      var upper = vec2<i32>(0, 0);
      for (var k = 0u; k < 4u; k = k + 1u) {
        lower = lower + partial[r * 64u + n * 8u + k];
        upper = upper + partial[r * 64u + n * 8u + 4u + k];
      }
      let both = weights[at];
      let d = widen_half(both & 0xffffu);
      let u = f_add(f_mul(d, f_from_int(lower.x)), f_mul(d, f_from_int(upper.x)));
      let t = f_sub(u, f_mul(widen_half(both >> 16u), f_from_int(lower.y + upper.y)));
      acc = f_add(acc, f_mul(s, t));`,
	},
	Q6_K: {
		words: 53,
		span: 256,
		read: `
    let half = j >> 2u;
    let k = j & 3u;
    for (var i = 0u; i < 8u; i = i + 1u) {
      let low = (weights[at + half * 16u + (k & 1u) * 8u + i] >> ((k >> 1u) * 4u)) & 0x0f0f0f0fu;
      w[i] = low | (((weights[at + 32u + half * 8u + i] >> (k * 2u)) & 0x03030303u) << 4u);
    }
    let two = weights[at + 48u + half * 2u + (k >> 1u)] >> ((k & 1u) * 16u);
    scale = vec2<i32>(extractBits(i32(two), 0u, 8u), extractBits(i32(two), 8u, 8u));`,
		// w - 32 is never formed: sum (w - 32) q = sum w q - 32 sum q, exact in integers.
		integers: `
    var first = -32 * sum_tile[r * 16u + j * 2u];
    var second = -32 * sum_tile[r * 16u + j * 2u + 1u];
    for (var i = 0u; i < 4u; i = i + 1u) {
      first += dot4(w[i], row_tile[r * 64u + j * 8u + i]);
      second += dot4(w[i + 4u], row_tile[r * 64u + j * 8u + 4u + i]);
    }
    partial[r * 64u + lane] = vec2<i32>(scale.x * first, scale.y * second);`,
		tail: `
      let d = widen_half(weights[at + 52u] & 0xffffu);
      var u = 0u;
      for (var k = 0u; k < 4u; k = k + 1u) {
        let pair = partial[r * 64u + n * 8u + k * 2u] + partial[r * 64u + n * 8u + k * 2u + 1u];
        let product = f_mul(d, f_from_int(pair.x + pair.y));
        if (k == 0u) { u = product; } else { u = f_add(u, product); }
      }
      acc = f_add(acc, f_mul(s, u));`,
	},
	Q8_0: {
		words: 9,
		span: 32,
		read: `
    for (var i = 0u; i < 8u; i = i + 1u) { w[i] = weights[at + 1u + i]; }`,
		integers: `
    var dot = 0;
    for (var i = 0u; i < 8u; i = i + 1u) { ${dot32} }
    partial[r * 64u + lane] = vec2<i32>(dot, 0);`,
		tail: `
      for (var k = 0u; k < min(8u, shape.blocks - b * 8u); k = k + 1u) {
        let d = widen_half(weights[at + k * 9u] & 0xffffu);
        acc = f_add(acc, f_mul(f_mul(d, s), f_from_int(partial[r * 64u + n * 8u + k].x)));
      }`,
	},
};

const dot4Packed = /* wgsl */ `
requires packed_4x8_integer_dot_product;
fn dot4(w: u32, x: vec2<u32>) -> i32 { return 128 * dot4I8Packed(w, x.x) + dot4I8Packed(w, x.y); }
`;
const dot4Plain = /* wgsl */ `
fn signed_byte(v: u32, i: u32) -> i32 { return extractBits(i32(v), i * 8u, 8u); }
fn dot4(w: u32, x: vec2<u32>) -> i32 {
  var sum = 0;
  for (var i = 0u; i < 4u; i = i + 1u) { sum += signed_byte(w, i) * (128 * signed_byte(x.x, i) + signed_byte(x.y, i)); }
  return sum;
}
`;

const bindings = /* wgsl */ `
// width: values of a row; blocks: of one weight row; superBlocks: of 256 values of one activation row; base: word of output row 0.
struct Shape { outputs: u32, width: u32, blocks: u32, superBlocks: u32, jobs: u32, base: u32, unused0: u32, unused1: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
// Jobs of 3 words from word 'jobs' on: first word of the matrix, word of the first slot, slots. Slots of 2 words: row read, row written.
@group(0) @binding(2) var<storage, read> plan: array<u32>;
@group(0) @binding(3) var<storage, read_write> outputs: array<u32>;
@group(0) @binding(4) var<storage, read_write> flags: array<atomic<u32>, 2>;
`;

function blockWgsl(type: keyof typeof blockTypes, packedDot: boolean): string {
	const block = blockTypes[type];
	const perSuper = 256 / block.span;
	// Thread j of an output reads super-block b: the block itself, or block j of the eight that make 256 weights.
	const at = `row_word + (b * ${perSuper}u${perSuper === 1 ? "" : " + j"}) * ${block.words}u`;
	const inside = perSuper === 1 ? "true" : "b * 8u + j < shape.blocks";
	return /* wgsl */ `
${packedDot ? dot4Packed : dot4Plain}
${floatWgsl}
${bindings}
@group(0) @binding(5) var<storage, read> packed: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read> sums: array<i32>;
@group(0) @binding(7) var<storage, read> scales: array<u32>;
${type === "Q4_K" || type === "Q5_K" ? sixBitScales : ""}
const ROWS = ${rowsPerJob}u;
var<workgroup> row_tile: array<vec2<u32>, ${rowsPerJob * 64}>;
var<workgroup> sum_tile: array<i32, ${rowsPerJob * 16}>;
var<workgroup> partial: array<vec2<i32>, ${rowsPerJob * 64}>;

@compute @workgroup_size(64) fn multiply(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let job = shape.jobs + group.y * 3u;
  let matrix_word = plan[job];
  let slot = plan[job + 1u];
  let rows = plan[job + 2u];
  let j = lane & 7u;
  let output = group.x * ${outputsPerGroup.block}u + (lane >> 3u);
  let row_word = matrix_word + min(output, shape.outputs - 1u) * shape.blocks * ${block.words}u;
  // In the tail this thread owns output n of row r.
  let n = lane & 7u;
  let r_own = lane >> 3u;
  let own_word = matrix_word + min(group.x * ${outputsPerGroup.block}u + n, shape.outputs - 1u) * shape.blocks * ${block.words}u;
  var acc = 0u;
  for (var b = 0u; b < shape.superBlocks; b = b + 1u) {
    for (var r = 0u; r < rows; r = r + 1u) {
      let origin = plan[slot + r * 2u] * shape.superBlocks + b;
      row_tile[r * 64u + lane] = packed[origin * 64u + lane];
      if (lane < 16u) { sum_tile[r * 16u + lane] = sums[origin * 16u + lane]; }
    }
    workgroupBarrier();
    var w = array<u32, 8>();
    var scale = vec2<i32>(0, 0);
    if (${inside}) {
    let at = ${at};
    ${block.read}
    }
    for (var r = 0u; r < rows; r = r + 1u) {
    ${block.integers}
    }
    workgroupBarrier();
    if (r_own < rows) {
      let r = r_own;
      let at = own_word + b * ${perSuper * block.words}u;
      let s = scales[plan[slot + r * 2u] * shape.superBlocks + b];
      ${block.tail}
    }
    workgroupBarrier();
  }
  if (r_own < rows && group.x * ${outputsPerGroup.block}u + n < shape.outputs) {
    if (!is_finite(acc)) { atomicOr(&flags[1], 1u); }
    outputs[shape.base + plan[slot + r_own * 2u + 1u] * shape.outputs + group.x * ${outputsPerGroup.block}u + n] = acc;
  }
}
`;
}

const floatReads = {
	F32: "weights[matrix_word + index]",
	F16: "widen_half((weights[matrix_word + (index >> 1u)] >> ((index & 1u) * 16u)) & 0xffffu)",
	BF16: "((weights[matrix_word + (index >> 1u)] >> ((index & 1u) * 16u)) & 0xffffu) << 16u",
} as const;

/** Float weights: nothing is quantised; four lanes `l = i mod 4` in ascending order, then (a0 + a1) + (a2 + a3). */
function floatTypeWgsl(type: keyof typeof floatReads): string {
	return /* wgsl */ `
${floatWgsl}
${bindings}
@group(0) @binding(5) var<storage, read> rows_in: array<u32>;
var<workgroup> lanes: array<u32, 64>;

@compute @workgroup_size(64) fn multiply(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let job = shape.jobs + group.y * 3u;
  let matrix_word = plan[job];
  let slot = plan[job + 1u];
  let rows = plan[job + 2u];
  let output = group.x * ${outputsPerGroup.float}u + (lane >> 2u);
  for (var r = 0u; r < rows; r = r + 1u) {
    var a = 0u;
    let origin = plan[slot + r * 2u] * shape.width;
    if (output < shape.outputs) {
      for (var i = lane & 3u; i < shape.width; i = i + 4u) {
        let index = output * shape.width + i;
        a = f_add(a, f_mul(${floatReads[type]}, rows_in[origin + i]));
      }
    }
    lanes[lane] = a;
    workgroupBarrier();
    if ((lane & 3u) == 0u && output < shape.outputs) {
      let y = f_add(f_add(lanes[lane], lanes[lane + 1u]), f_add(lanes[lane + 2u], lanes[lane + 3u]));
      if (!is_finite(y)) { atomicOr(&flags[1], 1u); }
      outputs[shape.base + plan[slot + r * 2u + 1u] * shape.outputs + output] = y;
    }
    workgroupBarrier();
  }
}
`;
}

/** True where rows enter as activation blocks, false where as plain floats. */
export function isBlockType(type: TensorType): type is keyof typeof blockTypes {
	return type in blockTypes;
}

/** The shader that multiplies rows with matrices of one type, entry point `multiply`. `packedDot`: the adapter's language has packed dot products. */
export function dotWgsl(type: TensorType, packedDot: boolean): string {
	return isBlockType(type) ? blockWgsl(type, packedDot) : floatTypeWgsl(type);
}

/** Bytes of one file block and words of one device block: the file's blocks, each padded to whole words. */
export function deviceBlock(type: TensorType): { fileBytes: number; words: number; span: number } | null {
	if (!isBlockType(type)) return null;
	const fileBytes = { Q4_K: 144, Q5_K: 176, Q6_K: 210, Q8_0: 34 }[type];
	return { fileBytes, words: blockTypes[type].words, span: blockTypes[type].span };
}
