import { floatWgsl } from "./wgsl-float.ts";

/**
 * The steps of an expert that work on rows rather than on weights: cutting rows into canonical-1's activation blocks,
 * `h = silu(g) * u`, and the weighted sum of whole rows. One workgroup is one block of 256 values of one row.
 *
 * Layouts, per row and block: `packed` 64 x vec2 (four q each, as bytes: high part q >> 7 and low part q & 127), `sums` 16 x i32
 * (of 16 q each), `scales` one binary32. A short last block is padded with q = 0.
 */
export const rowsWgsl = /* wgsl */ `
${floatWgsl}
struct Shape { width: u32, rows: u32, blocks: u32, unused: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> values: array<u32>;
@group(0) @binding(3) var<storage, read_write> packed: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> sums: array<i32>;
@group(0) @binding(5) var<storage, read_write> scales: array<u32>;
@group(0) @binding(6) var<storage, read_write> flags: array<atomic<u32>, 2>;

var<workgroup> largest: atomic<u32>;
var<workgroup> quads: array<i32, 64>;

fn quantise_block(v: array<u32, 4>, row: u32, block: u32, lane: u32) {
  var m = 0u;
  for (var i = 0u; i < 4u; i = i + 1u) { m = max(m, v[i] & 0x7fffffffu); }
  atomicMax(&largest, m);
  workgroupBarrier();
  m = atomicLoad(&largest);
  let at = row * shape.blocks + block;
  var high = 0u;
  var low = 0u;
  var sum = 0;
  if (m >= 0x1f800000u) { // 2^-64
    let inverse = f_div(0x45fff800u, m); // 8191 / m
    for (var i = 0u; i < 4u; i = i + 1u) {
      let q = nearest_int(f_mul(v[i], inverse));
      high = high | ((u32(q >> 7u) & 255u) << (8u * i));
      low = low | ((u32(q) & 127u) << (8u * i));
      sum = sum + q;
    }
  }
  packed[at * 64u + lane] = vec2<u32>(high, low);
  quads[lane] = sum;
  workgroupBarrier();
  if (lane < 16u) {
    let q = lane * 4u;
    sums[at * 16u + lane] = quads[q] + quads[q + 1u] + quads[q + 2u] + quads[q + 3u];
  }
  if (lane == 0u) { scales[at] = select(0u, f_div(m, 0x45fff800u), m >= 0x1f800000u); }
}

// Rows as they came.
@compute @workgroup_size(64) fn quantise(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  var v = array<u32, 4>(0u, 0u, 0u, 0u);
  for (var i = 0u; i < 4u; i = i + 1u) {
    let k = group.x * 256u + lane * 4u + i;
    if (k < shape.width) { v[i] = source[group.y * shape.width + k]; }
    if (!is_finite(v[i])) { atomicOr(&flags[0], 1u); }
  }
  quantise_block(v, group.y, group.x, lane);
}

// source: g of all pairs, then u of all pairs; values: h.
@compute @workgroup_size(64) fn activate(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  var v = array<u32, 4>(0u, 0u, 0u, 0u);
  for (var i = 0u; i < 4u; i = i + 1u) {
    let k = group.x * 256u + lane * 4u + i;
    if (k >= shape.width) { continue; }
    let at = group.y * shape.width + k;
    let h = f_mul(silu(source[at]), source[shape.rows * shape.width + at]);
    if (!is_finite(h)) { atomicOr(&flags[1], 1u); }
    values[at] = h;
    v[i] = h;
  }
  quantise_block(v, group.y, group.x, lane);
}
`;

/** Mode 1: per row, `acc = r32(acc + r32(w * y))` over its pairs in rank order. A row's pairs are `plan[first + row] .. plan[first + row + 1]`. */
export const sumWgsl = /* wgsl */ `
${floatWgsl}
struct Shape { width: u32, first: u32, weights: u32, unused: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> vectors: array<u32>;
@group(0) @binding(2) var<storage, read> plan: array<u32>;
@group(0) @binding(3) var<storage, read_write> summed: array<u32>;
@group(0) @binding(4) var<storage, read_write> flags: array<atomic<u32>, 2>;

@compute @workgroup_size(64) fn sum_rows(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= shape.width) { return; }
  var acc = 0u;
  for (var p = plan[shape.first + id.y]; p < plan[shape.first + id.y + 1u]; p = p + 1u) {
    acc = f_add(acc, f_mul(plan[shape.weights + p], vectors[p * shape.width + id.x]));
  }
  if (!is_finite(acc)) { atomicOr(&flags[1], 1u); }
  summed[id.y * shape.width + id.x] = acc;
}
`;

/** exp32 of each word, for the self-check: a silu test alone cannot see a wrong exp. */
export const exponentialsWgsl = /* wgsl */ `
${floatWgsl}
struct Shape { count: u32, unused0: u32, unused1: u32, unused2: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<u32>;

@compute @workgroup_size(64) fn exponentials(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < shape.count) { result[id.x] = exp32(source[id.x]); }
}
`;
