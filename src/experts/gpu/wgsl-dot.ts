import type { TensorType } from "../../model/weight-matrix.ts";
import { type BlockType, blockShaders } from "./wgsl-blocks.ts";
import { floatWgsl } from "./wgsl-float.ts";

/** Rows of one job that a workgroup multiplies at once. */
export const rowsPerJob = 8;
/** Outputs of a workgroup: eight threads share one (block types), four do (float types). */
export const outputsPerGroup = { block: 8, float: 16 } as const;

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
// width: values of a row; blocks: of one weight row; superBlocks: of 256 values of one activation row; jobs: word of the first job.
struct Shape { outputs: u32, width: u32, blocks: u32, superBlocks: u32, jobs: u32, unused0: u32, unused1: u32, unused2: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
// Jobs of 3 words: first word of the matrix, word of the first slot, slots. Slots of 2 words: row read, row written.
@group(0) @binding(2) var<storage, read> plan: array<u32>;
@group(0) @binding(3) var<storage, read_write> outputs: array<u32>;
@group(0) @binding(4) var<storage, read_write> flags: array<atomic<u32>, 2>;
`;

/**
 * A workgroup multiplies 8 outputs of a matrix with up to 8 rows. A *unit* is one super-block of 256 weights of one row; up to 8 units a
 * round (8 rows, or fewer rows and several super-blocks) keep all 64 threads busy in each of three stages:
 * integers (8 threads an output read its weights side by side), float terms (one thread a unit and output), and the one part whose
 * order counts, `acc = acc + term` with super-blocks ascending (one thread a row and output).
 */
function blockWgsl(type: BlockType, packedDot: boolean): string {
	const block = blockShaders[type];
	return /* wgsl */ `
${packedDot ? dot4Packed : dot4Plain}
${floatWgsl}
${bindings}
@group(0) @binding(5) var<storage, read> packed: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read> sums: array<i32>;
@group(0) @binding(7) var<storage, read> scales: array<u32>;
var<workgroup> shares: array<${block.share}, 512>;
var<workgroup> terms: array<u32, 64>;

@compute @workgroup_size(64) fn multiply(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let job = shape.jobs + group.y * 3u;
  let matrix_word = plan[job];
  let slot = plan[job + 1u];
  let rows = plan[job + 2u];
  let steps = ${rowsPerJob}u / rows;
  let first_output = group.x * ${outputsPerGroup.block}u;
  let last_output = shape.outputs - 1u;
  let row_words = shape.blocks * ${block.words}u;
  // In the first stage this thread is number j of an output; later it owns output n of unit or row 'own'.
  let j = lane & 7u;
  let read_word = matrix_word + min(first_output + (lane >> 3u), last_output) * row_words;
  let n = lane & 7u;
  let own = lane >> 3u;
  let own_word = matrix_word + min(first_output + n, last_output) * row_words;
  var acc = 0u;
  for (var first = 0u; first < shape.superBlocks; first = first + steps) {
    for (var step = 0u; step < min(steps, shape.superBlocks - first); step = step + 1u) {
      let b = first + step;
      ${block.read}
      for (var r = 0u; r < rows; r = r + 1u) {
        let x = plan[slot + r * 2u] * shape.superBlocks + b;
        let at = (step * rows + r) * 64u + lane;
        ${block.integers}
      }
    }
    workgroupBarrier();
    let b = first + own / rows;
    if (own < steps * rows && b < shape.superBlocks) {
      let s = scales[plan[slot + (own % rows) * 2u] * shape.superBlocks + b];
      let at = own * 64u + n * 8u;
      ${block.term}
    }
    workgroupBarrier();
    if (own < rows) {
      for (var step = 0u; step < min(steps, shape.superBlocks - first); step = step + 1u) {
        let at = (step * rows + own) * ${block.termsInShares ? "64u + n * 8u" : "8u + n"};
        ${block.add}
      }
    }
    ${block.termsInShares ? "workgroupBarrier();" : ""}
  }
  if (own < rows && first_output + n <= last_output) {
    if (!is_finite(acc)) { atomicOr(&flags[1], 1u); }
    outputs[plan[slot + own * 2u + 1u] * shape.outputs + first_output + n] = acc;
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
      outputs[plan[slot + r * 2u + 1u] * shape.outputs + output] = y;
    }
    workgroupBarrier();
  }
}
`;
}

/** True where rows enter as activation blocks, false where as plain floats. */
export function isBlockType(type: TensorType): type is BlockType {
	return type in blockShaders;
}

/** The shader that multiplies rows with matrices of one type, entry point `multiply`. `packedDot`: the shader language has packed dot products. */
export function dotWgsl(type: TensorType, packedDot: boolean): string {
	return isBlockType(type) ? blockWgsl(type, packedDot) : floatTypeWgsl(type);
}
