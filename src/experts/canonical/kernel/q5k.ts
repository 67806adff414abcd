// Q5_K. A block of half a panel (736 bytes): 8 sub-blocks of 32 weights in 80 bytes (five vectors; a 16-bit lane holds three weights
// in bits 1-5, 6-10 and 11-15, and bit 0 of the five lanes, highest first, is the sixteenth weight); scales, mins, d, dmin as in Q4_K.
import { SCALE } from "./activation";
import { bytes4, dot, firstScales, minDot, plus, secondScales } from "./panel";

export const Q5K_BLOCK: usize = 736;
export const Q5K_SCALES: usize = 640;
export const Q5K_MINS: usize = 672;
export const Q5K_D: usize = 704;
export const Q5K_DMIN: usize = 720;

@inline function tail(w: usize, first: v128, second: v128, x: usize, sum: v128): v128 {
  const d = v128.load(w, Q5K_D);
  const u = f32x4.add(f32x4.mul(d, f32x4.convert_i32x4_s(first)), f32x4.mul(d, f32x4.convert_i32x4_s(second)));
  const t = f32x4.sub(u, f32x4.mul(v128.load(w, Q5K_DMIN), minDot(w + Q5K_MINS, x)));
  return f32x4.add(sum, f32x4.mul(v128.load32_splat(x, SCALE), t));
}

/**
 * One panel times one row: 8 outputs at y.
 * Low and middle weights of a lane stay where they are, 2 and 64 times too large, until their sub-block ends.
 */
export function q5kRow(w: usize, x: usize, stride: usize, blocks: i32, y: usize): void {
  let a = w, b = w + Q5K_BLOCK;
  const low = i16x8.splat(31 << 1), middle = i16x8.splat(31 << 6), one = i16x8.splat(1);
  let sumA = f32x4.splat(0), sumB = sumA;
  for (; blocks > 0; blocks--, a += 2 * Q5K_BLOCK, b += 2 * Q5K_BLOCK, x += stride) {
    let wholeA = i32x4.splat(0), wholeB = wholeA, firstA = wholeA, firstB = wholeA;
    let at = x, va = a, vb = b, scales: usize = 0;
    do {
      let a0 = i32x4.splat(0), a1 = a0, a6 = a0, b0 = a0, b1 = a0, b6 = a0, lastA = a0, lastB = a0;
      const end = va + 80;
      do {
        const u = v128.load(va), v = v128.load(vb);
        const x0 = v128.load32_splat(at), x1 = v128.load32_splat(at, 4), x2 = v128.load32_splat(at, 8);
        a1 = plus(a1, dot(v128.and(u, low), x0)); b1 = plus(b1, dot(v128.and(v, low), x0));
        a6 = plus(a6, dot(v128.and(u, middle), x1)); b6 = plus(b6, dot(v128.and(v, middle), x1));
        a0 = plus(a0, dot(i16x8.shr_u(u, 11), x2)); b0 = plus(b0, dot(i16x8.shr_u(v, 11), x2));
        lastA = v128.or(i16x8.add(lastA, lastA), v128.and(u, one));
        lastB = v128.or(i16x8.add(lastB, lastB), v128.and(v, one));
        va += 16; vb += 16; at += 12;
      } while (va < end);
      const last = v128.load32_splat(at);
      at += 4;
      a0 = plus(plus(a0, dot(lastA, last)), plus(i32x4.shr_s(a1, 1), i32x4.shr_s(a6, 6)));
      b0 = plus(plus(b0, dot(lastB, last)), plus(i32x4.shr_s(b1, 1), i32x4.shr_s(b6, 6)));
      wholeA = plus(wholeA, i32x4.mul(a0, bytes4(a + Q5K_SCALES + scales)));
      wholeB = plus(wholeB, i32x4.mul(b0, bytes4(b + Q5K_SCALES + scales)));
      scales += 4;
      if (scales == 16) {
        firstA = wholeA; firstB = wholeB;
        wholeA = wholeB = i32x4.splat(0);
      }
    } while (scales < 32);
    sumA = tail(a, firstA, wholeA, x, sumA);
    sumB = tail(b, firstB, wholeB, x, sumB);
  }
  v128.store(y, sumA);
  v128.store(y, sumB, 16);
}

/** The sixteenth weight of each lane. */
@inline function sixteenth(v0: v128, v1: v128, v2: v128, v3: v128, v4: v128): v128 {
  const one = i16x8.splat(1);
  return v128.or(
    v128.or(v128.and(v4, one), i16x8.shl(v128.and(v3, one), 1)),
    v128.or(
      v128.or(i16x8.shl(v128.and(v2, one), 2), i16x8.shl(v128.and(v1, one), 3)),
      i16x8.shl(v128.and(v0, one), 4)));
}

@inline function put(sheet: usize, v: v128, scale: v128): void {
  const mask = i16x8.splat(31);
  v128.store(sheet, i16x8.mul(v128.and(i16x8.shr_u(v, 1), mask), scale));
  v128.store(sheet, i16x8.mul(v128.and(i16x8.shr_u(v, 6), mask), scale), 32);
  v128.store(sheet, i16x8.mul(i16x8.shr_u(v, 11), scale), 64);
}

@inline function put32(sheet: usize, w: usize, scale: v128): void {
  const v0 = v128.load(w), v1 = v128.load(w, 16), v2 = v128.load(w, 32), v3 = v128.load(w, 48), v4 = v128.load(w, 64);
  put(sheet, v0, scale);
  put(sheet + 96, v1, scale);
  put(sheet + 192, v2, scale);
  put(sheet + 288, v3, scale);
  put(sheet + 384, v4, scale);
  v128.store(sheet, i16x8.mul(sixteenth(v0, v1, v2, v3, v4), scale), 480);
}

/** Unpacks one block of half a panel into a sheet, scales multiplied in. */
export function q5kUnpack(w: usize, sheet: usize): void {
  for (let j: usize = 0; j < 4; j++) {
    const scales = v128.load8x8_u(w + (j << 3), Q5K_SCALES);
    put32(sheet + (j << 10), w + j * 160, firstScales(scales));
    put32(sheet + (j << 10) + 512, w + j * 160 + 80, secondScales(scales));
  }
}
