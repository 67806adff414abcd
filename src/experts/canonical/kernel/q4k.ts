// Q4_K. A block of a panel (1216 bytes): 8 sub-blocks of 32 weights, each 4 vectors of either half, a lane four weights
// (nibble t of lane 2r + p is weight 2t + p of row r); 8 x 8 scales; mins (see minDot); 8 d; 8 dmin.
import { SCALE } from "./activation";
import { dot, firstScales, minDot, plus, secondScales } from "./panel";

export const Q4K_BLOCK: usize = 1216;
export const Q4K_SCALES: usize = 1024;
export const Q4K_MINS: usize = 1088;
export const Q4K_D: usize = 1152;
export const Q4K_DMIN: usize = 1184;

@inline function tail(w: usize, whole: v128, x: usize, d: v128, dmin: v128, sum: v128): v128 {
  const t = f32x4.sub(f32x4.mul(d, f32x4.convert_i32x4_s(whole)), f32x4.mul(dmin, minDot(w + Q4K_MINS, x)));
  return f32x4.add(sum, f32x4.mul(v128.load32_splat(x, SCALE), t));
}

/**
 * One panel times one row: 8 outputs at y.
 * Nibble 1 of a lane stays where it is, 16 times too large, until its sub-block ends.
 */
export function q4kRow(w: usize, x: usize, stride: usize, blocks: i32, y: usize): void {
  const m0 = i16x8.splat(0x000f), m1 = i16x8.splat(0x00f0);
  let sumA = f32x4.splat(0), sumB = sumA;
  for (; blocks > 0; blocks--, x += stride) {
    let wholeA = i32x4.splat(0), wholeB = wholeA;
    let at = x, scales = w + Q4K_SCALES;
    do {
      let a0 = i32x4.splat(0), a1 = a0, b0 = a0, b1 = a0;
      const end = w + 128;
      do {
        const a = v128.load(w), b = v128.load(w, 16);
        const x0 = v128.load32_splat(at), x1 = v128.load32_splat(at, 4), x2 = v128.load32_splat(at, 8), x3 = v128.load32_splat(at, 12);
        a0 = plus(a0, dot(v128.and(a, m0), x0)); b0 = plus(b0, dot(v128.and(b, m0), x0));
        a1 = plus(a1, dot(v128.and(a, m1), x1)); b1 = plus(b1, dot(v128.and(b, m1), x1));
        a0 = plus(a0, dot(v128.and(i16x8.shr_u(a, 8), m0), x2)); b0 = plus(b0, dot(v128.and(i16x8.shr_u(b, 8), m0), x2));
        a0 = plus(a0, dot(i16x8.shr_u(a, 12), x3)); b0 = plus(b0, dot(i16x8.shr_u(b, 12), x3));
        w += 32; at += 16;
      } while (w < end);
      const s = v128.load8x8_u(scales);
      wholeA = plus(wholeA, i32x4.mul(plus(a0, i32x4.shr_s(a1, 4)), i32x4.extend_low_i16x8_u(s)));
      wholeB = plus(wholeB, i32x4.mul(plus(b0, i32x4.shr_s(b1, 4)), i32x4.extend_high_i16x8_u(s)));
      scales += 8;
    } while (w + 64 < scales);
    w -= Q4K_SCALES;
    sumA = tail(w, wholeA, x, v128.load(w, Q4K_D), v128.load(w, Q4K_DMIN), sumA);
    sumB = tail(w + 8, wholeB, x, v128.load(w, Q4K_D + 16), v128.load(w, Q4K_DMIN + 16), sumB);
    w += Q4K_BLOCK;
  }
  v128.store(y, sumA);
  v128.store(y, sumB, 16);
}

@inline function put(sheet: usize, v: v128, scale: v128): void {
  const mask = i16x8.splat(15);
  v128.store(sheet, i16x8.mul(v128.and(v, mask), scale));
  v128.store(sheet, i16x8.mul(v128.and(i16x8.shr_u(v, 4), mask), scale), 32);
  v128.store(sheet, i16x8.mul(v128.and(i16x8.shr_u(v, 8), mask), scale), 64);
  v128.store(sheet, i16x8.mul(i16x8.shr_u(v, 12), scale), 96);
}

/** Unpacks one block into a sheet, scales multiplied in. */
export function q4kUnpack(w: usize, sheet: usize): void {
  for (let scales = w + Q4K_SCALES, end = scales + 64; scales < end; scales += 8) {
    const s = v128.load8x8_u(scales);
    const a = firstScales(s), b = secondScales(s);
    for (let i = 0; i < 4; i++, w += 32, sheet += 128) {
      put(sheet, v128.load(w), a);
      put(sheet + 16, v128.load(w, 16), b);
    }
  }
}
