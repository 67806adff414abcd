// Q5_K. A block of a panel (1472 bytes): 8 sub-blocks of 32 weights, each 5 vectors of either half (a lane holds three weights in
// bits 1-5, 6-10 and 11-15; bit 0 of the five lanes, highest first, is the sixteenth weight); scales, mins, d, dmin as in Q4_K.
import { SCALE } from "./activation";
import { dot, firstScales, minDot, plus, secondScales } from "./panel";

export const Q5K_BLOCK: usize = 1472;
export const Q5K_SCALES: usize = 1280;
export const Q5K_MINS: usize = 1344;
export const Q5K_D: usize = 1408;
export const Q5K_DMIN: usize = 1440;

@inline function tail(w: usize, first: v128, second: v128, x: usize, d: v128, dmin: v128, sum: v128): v128 {
  const u = f32x4.add(f32x4.mul(d, f32x4.convert_i32x4_s(first)), f32x4.mul(d, f32x4.convert_i32x4_s(second)));
  const t = f32x4.sub(u, f32x4.mul(dmin, minDot(w + Q5K_MINS, x)));
  return f32x4.add(sum, f32x4.mul(v128.load32_splat(x, SCALE), t));
}

/**
 * One panel times one row: 8 outputs at y.
 * Low and middle weights of a lane stay where they are, 2 and 64 times too large, until their sub-block ends.
 */
export function q5kRow(w: usize, x: usize, stride: usize, blocks: i32, y: usize): void {
  const low = i16x8.splat(31 << 1), middle = i16x8.splat(31 << 6), one = i16x8.splat(1);
  let sumA = f32x4.splat(0), sumB = sumA;
  for (; blocks > 0; blocks--, x += stride) {
    let wholeA = i32x4.splat(0), wholeB = wholeA, firstA = wholeA, firstB = wholeA;
    let at = x, scales = w + Q5K_SCALES;
    const half = scales + 32;
    do {
      let a0 = i32x4.splat(0), a1 = a0, a6 = a0, b0 = a0, b1 = a0, b6 = a0, lastA = a0, lastB = a0;
      const end = w + 160;
      do {
        const a = v128.load(w), b = v128.load(w, 16);
        const x0 = v128.load32_splat(at), x1 = v128.load32_splat(at, 4), x2 = v128.load32_splat(at, 8);
        a1 = plus(a1, dot(v128.and(a, low), x0)); b1 = plus(b1, dot(v128.and(b, low), x0));
        a6 = plus(a6, dot(v128.and(a, middle), x1)); b6 = plus(b6, dot(v128.and(b, middle), x1));
        a0 = plus(a0, dot(i16x8.shr_u(a, 11), x2)); b0 = plus(b0, dot(i16x8.shr_u(b, 11), x2));
        lastA = v128.or(i16x8.add(lastA, lastA), v128.and(a, one));
        lastB = v128.or(i16x8.add(lastB, lastB), v128.and(b, one));
        w += 32; at += 12;
      } while (w < end);
      const last = v128.load32_splat(at), s = v128.load8x8_u(scales);
      a0 = plus(plus(a0, dot(lastA, last)), plus(i32x4.shr_s(a1, 1), i32x4.shr_s(a6, 6)));
      b0 = plus(plus(b0, dot(lastB, last)), plus(i32x4.shr_s(b1, 1), i32x4.shr_s(b6, 6)));
      wholeA = plus(wholeA, i32x4.mul(a0, i32x4.extend_low_i16x8_u(s)));
      wholeB = plus(wholeB, i32x4.mul(b0, i32x4.extend_high_i16x8_u(s)));
      at += 4; scales += 8;
      if (scales == half) {
        firstA = wholeA; firstB = wholeB;
        wholeA = wholeB = i32x4.splat(0);
      }
    } while (scales < half + 32);
    w -= Q5K_SCALES;
    sumA = tail(w, firstA, wholeA, x, v128.load(w, Q5K_D), v128.load(w, Q5K_DMIN), sumA);
    sumB = tail(w + 8, firstB, wholeB, x, v128.load(w, Q5K_D + 16), v128.load(w, Q5K_DMIN + 16), sumB);
    w += Q5K_BLOCK;
  }
  v128.store(y, sumA);
  v128.store(y, sumB, 16);
}

@inline function put(sheet: usize, v: v128, scale: v128): void {
  const mask = i16x8.splat(31);
  v128.store(sheet, i16x8.mul(v128.and(i16x8.shr_u(v, 1), mask), scale));
  v128.store(sheet, i16x8.mul(v128.and(i16x8.shr_u(v, 6), mask), scale), 32);
  v128.store(sheet, i16x8.mul(i16x8.shr_u(v, 11), scale), 64);
}

/** 32 weights of one half. */
function put32(sheet: usize, w: usize, scale: v128): void {
  const one = i16x8.splat(1);
  let last = i16x8.splat(0);
  for (const end = sheet + 480; sheet < end; sheet += 96, w += 32) {
    const v = v128.load(w);
    put(sheet, v, scale);
    last = v128.or(i16x8.add(last, last), v128.and(v, one));
  }
  v128.store(sheet, i16x8.mul(last, scale));
}

/** Unpacks one block into a sheet, scales multiplied in. */
export function q5kUnpack(w: usize, sheet: usize): void {
  for (let scales = w + Q5K_SCALES, end = scales + 64; scales < end; scales += 8, w += 160, sheet += 512) {
    const s = v128.load8x8_u(scales);
    put32(sheet, w, firstScales(s));
    put32(sheet + 16, w + 16, secondScales(s));
  }
}
