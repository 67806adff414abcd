// Q8_0. A block of a panel (288 bytes): 32 weights, 8 vectors of either half (a vector is 4 weights: byte 8t + 2r + p is weight
// 2t + p of row r), then 8 d.
import { SCALE } from "./activation";
import { dot, plus } from "./panel";

export const Q80_BLOCK: usize = 288;
export const Q80_D: usize = 256;

/** One panel times one row: 8 outputs at y. `blocks` are of 32 weights; eight of them share a record. */
export function q80Row(w: usize, record: usize, stride: usize, blocks: i32, y: usize): void {
  let sumA = f32x4.splat(0), sumB = sumA;
  let x = record;
  for (let i = 1; i <= blocks; i++) {
    let a = i32x4.splat(0), b = a;
    const end = w + Q80_D;
    do {
      const x0 = v128.load32_splat(x), x1 = v128.load32_splat(x, 4), x2 = v128.load32_splat(x, 8), x3 = v128.load32_splat(x, 12);
      a = plus(a, plus(dot(v128.load8x8_s(w), x0), dot(v128.load8x8_s(w, 8), x1)));
      b = plus(b, plus(dot(v128.load8x8_s(w, 16), x0), dot(v128.load8x8_s(w, 24), x1)));
      a = plus(a, plus(dot(v128.load8x8_s(w, 32), x2), dot(v128.load8x8_s(w, 40), x3)));
      b = plus(b, plus(dot(v128.load8x8_s(w, 48), x2), dot(v128.load8x8_s(w, 56), x3)));
      w += 64; x += 16;
    } while (w < end);
    const s = v128.load32_splat(record, SCALE);
    sumA = f32x4.add(sumA, f32x4.mul(f32x4.mul(v128.load(w), s), f32x4.convert_i32x4_s(a)));
    sumB = f32x4.add(sumB, f32x4.mul(f32x4.mul(v128.load(w, 16), s), f32x4.convert_i32x4_s(b)));
    w += 32;
    if ((i & 7) == 0) {
      record += stride;
      x = record;
    }
  }
  v128.store(y, sumA);
  v128.store(y, sumB, 16);
}

/** Unpacks one block: 16 pairs of a sheet. */
export function q80Unpack(w: usize, sheet: usize): void {
  for (let i = 0; i < 8; i++, w += 32, sheet += 64) {
    v128.store(sheet, v128.load8x8_s(w));
    v128.store(sheet, v128.load8x8_s(w, 16), 16);
    v128.store(sheet, v128.load8x8_s(w, 8), 32);
    v128.store(sheet, v128.load8x8_s(w, 24), 48);
  }
}
