// The module's exports: pack, quantise, multiply, and the float vectors. Weight types are ggml's numbers; all sizes are in bytes
// unless their name says otherwise. Nothing here keeps state: every call is told where its work space is.
import { RECORD, SCALE } from "./activation";
import { floatRow, floatRows2 } from "./floats";
import { packBlocks, packFloats } from "./pack";
import { minDot, SHEET, tile1, tile4 } from "./panel";
import { Q4K_BLOCK, Q4K_D, Q4K_DMIN, Q4K_MINS, q4kRow, q4kUnpack } from "./q4k";
import { Q5K_BLOCK, Q5K_D, Q5K_DMIN, Q5K_MINS, q5kRow, q5kUnpack } from "./q5k";
import { Q6K_BLOCK, Q6K_D, q6kRow, q6kUnpack } from "./q6k";
import { Q80_BLOCK, Q80_D, q80Row, q80Unpack } from "./q80";

export { finite, quantise, takeQuantised } from "./activation";
export { addWeighted, exponentials, swiglu } from "./vectors";

const F32 = 0, F16 = 1, Q8_0 = 8, Q4_K = 12, Q5_K = 13, Q6_K = 14;

/** Bytes of one block of a panel. */
function blockBytes(type: i32): usize {
  if (type == Q4_K) return Q4K_BLOCK;
  if (type == Q5_K) return Q5K_BLOCK;
  return type == Q6_K ? Q6K_BLOCK : Q80_BLOCK;
}

/** Bytes of a panel (eight rows) of `inputs` weights. */
export function panelBytes(type: i32, inputs: i32): usize {
  if (type == Q4_K || type == Q5_K || type == Q6_K) return (<usize>inputs >> 8) * blockBytes(type);
  if (type == Q8_0) return (<usize>inputs >> 5) * Q80_BLOCK;
  return ((<usize>inputs + 3) >> 2) * (type == F32 ? 128 : 64);
}

/** Half (0 or 1) of a panel from up to four rows of a file. */
function packHalf(
  type: i32, source: usize, rowBytes: usize, inputs: usize, rows: usize, w: usize, half: usize, work: usize): i32 {
  const floats = w + half * (panelBytes(type, <i32>inputs) >> 1);
  if (type == F32) return packFloats<f32>(source, inputs, rows, floats);
  if (type == F16) return packFloats<i16>(source, inputs, rows, floats);
  if (type > Q6_K) return packFloats<u16>(source, inputs, rows, floats);
  const blocks = inputs >> (type == Q8_0 ? 5 : 8);
  return packBlocks(type, source, rowBytes, rows, rowBytes / blocks, <i32>blocks, w, half, blockBytes(type), work);
}

/** Lays `outputs` rows of a file out in panels. Returns how many scales or weights are not finite. Work space: 4 KiB. */
export function pack(type: i32, source: usize, rowBytes: usize, inputs: i32, outputs: i32, w: usize, work: usize): i32 {
  let bad = 0;
  for (let o = 0; o < outputs; o += 8, w += panelBytes(type, inputs)) {
    for (let half = 0; half < 2; half++, source += 4 * rowBytes) {
      const rows = <usize>max(0, min(4, outputs - o - 4 * half));
      bad += packHalf(type, source, rowBytes, <usize>inputs, rows, w, <usize>half, work);
    }
  }
  return bad;
}

/** One panel times one row. */
function rowDot(type: i32, w: usize, x: usize, stride: usize, inputs: i32, y: usize): void {
  if (type == Q4_K) q4kRow(w, x, stride, inputs >> 8, y);
  else if (type == Q5_K) q5kRow(w, x, stride, inputs >> 8, y);
  else if (type == Q6_K) q6kRow(w, x, stride, inputs >> 8, y);
  else q80Row(w, x, stride, inputs >> 5, y);
}

function unpack(type: i32, w: usize, segments: i32, sheet: usize): void {
  if (type == Q4_K) q4kUnpack(w, sheet);
  else if (type == Q5_K) q5kUnpack(w, sheet);
  else if (type == Q6_K) q6kUnpack(w, sheet);
  else for (let s: usize = 0; s < <usize>segments; s++) q80Unpack(w + s * Q80_BLOCK, sheet + (s << 9));
}

/** The float tail of one block for one row and half a panel. `dots` holds f(I) of the segments, `step` bytes apart. */
@inline function tail(type: i32, w: usize, half: usize, x: usize, dots: usize, step: usize, segments: i32, acc: v128): v128 {
  const s = v128.load32_splat(x, SCALE);
  const dAt = w + 16 * half;
  if (type == Q8_0) {
    for (let i = 0; i < segments; i++, dots += step) {
      acc = f32x4.add(acc, f32x4.mul(f32x4.mul(v128.load(dAt + <usize>i * Q80_BLOCK, Q80_D), s), v128.load(dots)));
    }
    return acc;
  }
  const d = v128.load(dAt + (type == Q4_K ? Q4K_D : type == Q5_K ? Q5K_D : Q6K_D));
  let t = f32x4.mul(d, v128.load(dots));
  for (let i = 1; i < segments; i++) {
    dots += step;
    t = f32x4.add(t, f32x4.mul(d, v128.load(dots)));
  }
  if (type == Q4_K) t = f32x4.sub(t, f32x4.mul(v128.load(dAt, Q4K_DMIN), minDot(w + Q4K_MINS + 8 * half, x)));
  else if (type == Q5_K) t = f32x4.sub(t, f32x4.mul(v128.load(dAt, Q5K_DMIN), minDot(w + Q5K_MINS + 8 * half, x)));
  return f32x4.add(acc, f32x4.mul(s, t));
}

/** One panel times many rows, block by block; sums of row r at acc + 32 r. */
function rowDots(type: i32, w: usize, x: usize, rows: i32, inputs: i32, acc: usize, work: usize): void {
  const dots = work + SHEET;
  const next = blockBytes(type) << (type == Q8_0 ? 3 : 0);
  memory.fill(acc, 0, <usize>rows << 5);
  for (; inputs > 0; inputs -= 256, w += next) {
    const segments = type == Q4_K ? 1 : type == Q5_K ? 2 : type == Q6_K ? 4 : min(8, inputs >> 5);
    const pairs = type == Q8_0 ? 16 : 128 / segments;
    unpack(type, w, segments, work);
    for (let r = 0; r < rows;) {
      const four = rows - r >= 4;
      const step: usize = four ? 128 : 32;
      for (let s: usize = 0; s < <usize>segments; s++) {
        const sheet = work + s * (<usize>pairs << 5), at = x + s * (<usize>pairs << 2), to = dots + s * step;
        if (four) tile4(sheet, at, pairs, to);
        else tile1(sheet, at, pairs, to);
      }
      const end = four ? r + 4 : r + 1;
      for (let from = dots; r < end; r++, x += RECORD, from += 32) {
        const sum = acc + (<usize>r << 5);
        v128.store(sum, tail(type, w, 0, x, from, step, segments, v128.load(sum)));
        v128.store(sum, tail(type, w, 1, x, from + 16, step, segments, v128.load(sum, 16)), 16);
      }
    }
  }
}

@inline function multiplyFloats<T>(w: usize, x: usize, rows: usize, fours: i32, halves: i32, y: usize, yStride: usize): void {
  const half = (<usize>fours << 4) * sizeof<T>(), next = <usize>fours << 4;
  for (let p = 0; p < halves; p++, w += half, y += 16) {
    let r: usize = 0;
    for (; r + 1 < rows; r += 2) {
      const to = y + r * yStride;
      floatRows2<T>(w, x + r * next, next, fours, to, to + yStride);
    }
    if (r < rows) v128.store(y + r * yStride, floatRow<T>(w, x + r * next, fours));
  }
}

/**
 * Panels times rows: output o of row r goes to y + r * yStride + 4 * o. Rows are records (quantise), or floats padded with
 * zeros to a multiple of four values for float weights. Work space: 5 KiB and 32 bytes a row.
 */
export function multiply(
  type: i32, w: usize, x: usize, rows: i32, inputs: i32, panels: i32, y: usize, yStride: usize, work: usize): void {
  const fours = (inputs + 3) >> 2;
  if (type == F32) return multiplyFloats<f32>(w, x, <usize>rows, fours, 2 * panels, y, yStride);
  if (type == F16) return multiplyFloats<i16>(w, x, <usize>rows, fours, 2 * panels, y, yStride);
  if (type > Q6_K) return multiplyFloats<u16>(w, x, <usize>rows, fours, 2 * panels, y, yStride);
  const panel = panelBytes(type, inputs);
  const acc = work + SHEET + 1024;
  for (let p = 0; p < panels; p++, w += panel, y += 32) {
    if (rows < 4) {
      for (let r: usize = 0; r < <usize>rows; r++) rowDot(type, w, x + r * RECORD, <usize>rows * RECORD, inputs, y + r * yStride);
    } else {
      rowDots(type, w, x, rows, inputs, acc, work);
      for (let r: usize = 0; r < <usize>rows; r++) {
        v128.store(y + r * yStride, v128.load(acc + (r << 5)));
        v128.store(y + r * yStride, v128.load(acc + (r << 5), 16), 16);
      }
    }
  }
}
