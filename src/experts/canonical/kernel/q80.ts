// Q8_0. A block of half a panel (144 bytes): 32 weights of four rows (16 bytes are 4 weights: byte 8t + 2r + p is weight 2t + p of
// row r), then 4 d.
import { RECORD, SCALE } from "./activation";
import { dot, plus } from "./panel";

export const Q80_BLOCK: usize = 144;
export const Q80_D: usize = 128;

/** One panel times one row: 8 outputs at y. `blocks` are of 32 weights; eight of them share a record. */
export function q80Row(w: usize, record: usize, stride: usize, blocks: i32, y: usize): void {
  let a = w, b = w + Q80_BLOCK;
  let sumA = f32x4.splat(0), sumB = sumA;
  let x = record;
  for (let i = 1; i <= blocks; i++) {
    let dotA = i32x4.splat(0), dotB = dotA;
    const end = a + Q80_D;
    do {
      const x0 = v128.load32_splat(x), x1 = v128.load32_splat(x, 4), x2 = v128.load32_splat(x, 8), x3 = v128.load32_splat(x, 12);
      dotA = plus(dotA, plus(dot(v128.load8x8_s(a), x0), dot(v128.load8x8_s(a, 8), x1)));
      dotA = plus(dotA, plus(dot(v128.load8x8_s(a, 16), x2), dot(v128.load8x8_s(a, 24), x3)));
      dotB = plus(dotB, plus(dot(v128.load8x8_s(b), x0), dot(v128.load8x8_s(b, 8), x1)));
      dotB = plus(dotB, plus(dot(v128.load8x8_s(b, 16), x2), dot(v128.load8x8_s(b, 24), x3)));
      a += 32; b += 32; x += 16;
    } while (a < end);
    const s = v128.load32_splat(record, SCALE);
    sumA = f32x4.add(sumA, f32x4.mul(f32x4.mul(v128.load(a), s), f32x4.convert_i32x4_s(dotA)));
    sumB = f32x4.add(sumB, f32x4.mul(f32x4.mul(v128.load(b), s), f32x4.convert_i32x4_s(dotB)));
    a += 16 + Q80_BLOCK; b += 16 + Q80_BLOCK;
    if ((i & 7) == 0) {
      record += stride;
      x = record;
    }
  }
  v128.store(y, sumA);
  v128.store(y, sumB, 16);
}

/** Unpacks one block of half a panel: 16 pairs of a sheet. */
export function q80Unpack(w: usize, sheet: usize): void {
  for (let i: usize = 0; i < 16; i++) v128.store(sheet + (i << 5), v128.load8x8_s(w + (i << 3)));
}
