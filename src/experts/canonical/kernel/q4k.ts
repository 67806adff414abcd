// Q4_K. A block of half a panel (608 bytes): 8 sub-blocks of 32 weights in 64 bytes, each 16 bytes 8 weights of four rows
// (nibble t of lane 2r + p is weight 2t + p of row r); 8 x 4 scales; 8 x 4 mins, two sub-blocks side by side; 4 d; 4 dmin.
import { RECORD, SCALE } from "./activation";
import { bytes4, dot, firstScales, minDot, plus, secondScales } from "./panel";

export const Q4K_BLOCK: usize = 608;
export const Q4K_SCALES: usize = 512;
export const Q4K_MINS: usize = 544;
export const Q4K_D: usize = 576;
export const Q4K_DMIN: usize = 592;

@inline function tail(w: usize, whole: v128, x: usize, sum: v128): v128 {
  const t = f32x4.sub(
    f32x4.mul(v128.load(w, Q4K_D), f32x4.convert_i32x4_s(whole)),
    f32x4.mul(v128.load(w, Q4K_DMIN), minDot(w + Q4K_MINS, x)));
  return f32x4.add(sum, f32x4.mul(v128.load32_splat(x, SCALE), t));
}

/**
 * One panel times one row: 8 outputs at y.
 * Nibble 1 of a lane stays where it is, 16 times too large, until its sub-block ends.
 */
export function q4kRow(w: usize, x: usize, stride: usize, blocks: i32, y: usize): void {
  let a = w, b = w + Q4K_BLOCK;
  const m0 = i16x8.splat(0x000f), m1 = i16x8.splat(0x00f0);
  let sumA = f32x4.splat(0), sumB = sumA;
  for (; blocks > 0; blocks--, a += 2 * Q4K_BLOCK, b += 2 * Q4K_BLOCK, x += stride) {
    let wholeA = i32x4.splat(0), wholeB = wholeA;
    let at = x, va = a, vb = b, scales: usize = 0;
    do {
      let a0 = i32x4.splat(0), a1 = a0, b0 = a0, b1 = a0;
      const end = va + 64;
      do {
        const u = v128.load(va), v = v128.load(vb);
        const x0 = v128.load32_splat(at), x1 = v128.load32_splat(at, 4), x2 = v128.load32_splat(at, 8), x3 = v128.load32_splat(at, 12);
        a0 = plus(a0, dot(v128.and(u, m0), x0)); b0 = plus(b0, dot(v128.and(v, m0), x0));
        a1 = plus(a1, dot(v128.and(u, m1), x1)); b1 = plus(b1, dot(v128.and(v, m1), x1));
        a0 = plus(a0, dot(v128.and(i16x8.shr_u(u, 8), m0), x2)); b0 = plus(b0, dot(v128.and(i16x8.shr_u(v, 8), m0), x2));
        a0 = plus(a0, dot(i16x8.shr_u(u, 12), x3)); b0 = plus(b0, dot(i16x8.shr_u(v, 12), x3));
        va += 16; vb += 16; at += 16;
      } while (va < end);
      wholeA = plus(wholeA, i32x4.mul(plus(a0, i32x4.shr_s(a1, 4)), bytes4(a + Q4K_SCALES + scales)));
      wholeB = plus(wholeB, i32x4.mul(plus(b0, i32x4.shr_s(b1, 4)), bytes4(b + Q4K_SCALES + scales)));
      scales += 4;
    } while (scales < 32);
    sumA = tail(a, wholeA, x, sumA);
    sumB = tail(b, wholeB, x, sumB);
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

/** Unpacks one block of half a panel into a sheet, scales multiplied in. */
export function q4kUnpack(w: usize, sheet: usize): void {
  for (let j: usize = 0; j < 4; j++) {
    const scales = v128.load8x8_u(w + (j << 3), Q4K_SCALES);
    const s0 = firstScales(scales), s1 = secondScales(scales);
    const at = w + (j << 7), to = sheet + (j << 10);
    put(to, v128.load(at), s0);
    put(to + 128, v128.load(at, 16), s0);
    put(to + 256, v128.load(at, 32), s0);
    put(to + 384, v128.load(at, 48), s0);
    put(to + 512, v128.load(at, 64), s1);
    put(to + 640, v128.load(at, 80), s1);
    put(to + 768, v128.load(at, 96), s1);
    put(to + 896, v128.load(at, 112), s1);
  }
}
