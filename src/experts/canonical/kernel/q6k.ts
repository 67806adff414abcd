// Q6_K. A block of a panel (1696 bytes): 16 sub-blocks of 16 weights, each 3 vectors of either half (a lane holds two weights in
// bits 0-5 and 6-11; bits 12-15 of the first two lanes are the low four bits of weights 6 and 7, those of the third their high
// pairs); 16 x 8 signed scales; 8 d. Weights are stored as in the file, 32 too high.
import { SCALE, SUM_32 } from "./activation";
import { dot, firstScales, plus, secondScales } from "./panel";

export const Q6K_BLOCK: usize = 1696;
export const Q6K_SCALES: usize = 1536;
export const Q6K_D: usize = 1664;

@inline function seventh(v0: v128, v2: v128): v128 {
  return v128.or(i16x8.shr_u(v0, 12), v128.and(i16x8.shr_u(v2, 8), i16x8.splat(0x30)));
}
@inline function eighth(v1: v128, v2: v128): v128 {
  return v128.or(i16x8.shr_u(v1, 12), v128.and(i16x8.shr_u(v2, 10), i16x8.splat(0x30)));
}

/** 16 weights of one half times 16 activations, plus `start`. Upper weights stay where they are, 64 times too large. */
@inline function sub16(w: usize, x: usize, start: v128): v128 {
  const low = i16x8.splat(0x003f), high = i16x8.splat(0x0fc0);
  const v0 = v128.load(w), v1 = v128.load(w, 32), v2 = v128.load(w, 64);
  let a = plus(start, dot(v128.and(v0, low), v128.load32_splat(x)));
  let b = dot(v128.and(v0, high), v128.load32_splat(x, 4));
  a = plus(a, dot(v128.and(v1, low), v128.load32_splat(x, 8)));
  b = plus(b, dot(v128.and(v1, high), v128.load32_splat(x, 12)));
  let c = dot(v128.and(v2, low), v128.load32_splat(x, 16));
  b = plus(b, dot(v128.and(v2, high), v128.load32_splat(x, 20)));
  a = plus(a, dot(seventh(v0, v2), v128.load32_splat(x, 24)));
  c = plus(c, dot(eighth(v1, v2), v128.load32_splat(x, 28)));
  return plus(plus(a, c), i32x4.shr_s(b, 6));
}

/** u of one half of a block: w and scales are those of the half. */
@inline function half(w: usize, x: usize, scales: usize, d: v128): v128 {
  let u = f32x4.splat(-0.0); // -0 + r32(d*I0) is r32(d*I0), whatever its sign
  let sums = x + SUM_32;
  const end = scales + 128;
  do {
    let whole = i32x4.splat(0);
    const quarter = scales + 32;
    do {
      const s = i32x4.extend_low_i16x8_s(i16x8.extend_low_i8x16_s(v128.load32_zero(scales)));
      whole = plus(whole, i32x4.mul(sub16(w, x, v128.load32_splat(sums)), s));
      w += 96; x += 32; scales += 8; sums += 4;
    } while (scales < quarter);
    u = f32x4.add(u, f32x4.mul(d, f32x4.convert_i32x4_s(whole)));
  } while (scales < end);
  return u;
}

/** One panel times one row: 8 outputs at y. */
export function q6kRow(w: usize, x: usize, stride: usize, blocks: i32, y: usize): void {
  let sumA = f32x4.splat(0), sumB = sumA;
  for (; blocks > 0; blocks--, w += Q6K_BLOCK, x += stride) {
    const s = v128.load32_splat(x, SCALE);
    sumA = f32x4.add(sumA, f32x4.mul(s, half(w, x, w + Q6K_SCALES, v128.load(w, Q6K_D))));
    sumB = f32x4.add(sumB, f32x4.mul(s, half(w + 16, x, w + Q6K_SCALES + 4, v128.load(w, Q6K_D + 16))));
  }
  v128.store(y, sumA);
  v128.store(y, sumB, 16);
}

@inline function one(v: v128, scale: v128): v128 { return i16x8.mul(i16x8.sub(v, i16x8.splat(32)), scale); }

/** 16 weights of one half. */
@inline function put16(sheet: usize, w: usize, scale: v128): void {
  const mask = i16x8.splat(63);
  const v0 = v128.load(w), v1 = v128.load(w, 32), v2 = v128.load(w, 64);
  v128.store(sheet, one(v128.and(v0, mask), scale));
  v128.store(sheet, one(v128.and(i16x8.shr_u(v0, 6), mask), scale), 32);
  v128.store(sheet, one(v128.and(v1, mask), scale), 64);
  v128.store(sheet, one(v128.and(i16x8.shr_u(v1, 6), mask), scale), 96);
  v128.store(sheet, one(v128.and(v2, mask), scale), 128);
  v128.store(sheet, one(v128.and(i16x8.shr_u(v2, 6), mask), scale), 160);
  v128.store(sheet, one(seventh(v0, v2), scale), 192);
  v128.store(sheet, one(eighth(v1, v2), scale), 224);
}

/** Unpacks one block into a sheet, scales multiplied in. */
export function q6kUnpack(w: usize, sheet: usize): void {
  for (let scales = w + Q6K_SCALES, end = scales + 128; scales < end; scales += 8, w += 96, sheet += 256) {
    const s = v128.load8x8_s(scales);
    put16(sheet, w, firstScales(s));
    put16(sheet + 16, w + 16, secondScales(s));
  }
}
