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
@inline function sub16(v0: v128, v1: v128, v2: v128, x: v128, x2: v128, start: v128): v128 {
  const low = i16x8.splat(0x003f), high = i16x8.splat(0x0fc0);
  let a = plus(start, dot(v128.and(v0, low), pair0(x)));
  let b = dot(v128.and(v0, high), pair1(x));
  a = plus(a, dot(v128.and(v1, low), pair2(x)));
  b = plus(b, dot(v128.and(v1, high), pair3(x)));
  a = plus(a, dot(v128.and(v2, low), pair0(x2)));
  b = plus(b, dot(v128.and(v2, high), pair1(x2)));
  a = plus(a, dot(seventh(v0, v2), pair2(x2)));
  a = plus(a, dot(eighth(v1, v2), pair3(x2)));
  return plus(a, i32x4.shr_s(b, 6));
}

@inline function pair0(x: v128): v128 { return v128.shuffle<i32>(x, x, 0, 0, 0, 0); }
@inline function pair1(x: v128): v128 { return v128.shuffle<i32>(x, x, 1, 1, 1, 1); }
@inline function pair2(x: v128): v128 { return v128.shuffle<i32>(x, x, 2, 2, 2, 2); }
@inline function pair3(x: v128): v128 { return v128.shuffle<i32>(x, x, 3, 3, 3, 3); }

/** One panel times one row: 8 outputs at y. */
export function q6kRow(w: usize, x: usize, stride: usize, blocks: i32, y: usize): void {
  let sumA = f32x4.splat(0), sumB = sumA;
  for (; blocks > 0; blocks--, x += stride) {
    // -0 + r32(d*I0) is r32(d*I0), whatever its sign.
    let uA = f32x4.splat(-0.0), uB = uA;
    const dA = v128.load(w, Q6K_D), dB = v128.load(w, Q6K_D + 16);
    let at = x, sums = x + SUM_32, scales = w + Q6K_SCALES;
    do {
      let wholeA = i32x4.splat(0), wholeB = wholeA;
      const end = w + 384;
      do {
        const x0 = v128.load(at), x1 = v128.load(at, 16), start = v128.load32_splat(sums);
        const s = v128.load8x8_s(scales);
        const a = sub16(v128.load(w), v128.load(w, 32), v128.load(w, 64), x0, x1, start);
        const b = sub16(v128.load(w, 16), v128.load(w, 48), v128.load(w, 80), x0, x1, start);
        wholeA = plus(wholeA, i32x4.mul(a, i32x4.extend_low_i16x8_s(s)));
        wholeB = plus(wholeB, i32x4.mul(b, i32x4.extend_high_i16x8_s(s)));
        w += 96; at += 32; scales += 8; sums += 4;
      } while (w < end);
      uA = f32x4.add(uA, f32x4.mul(dA, f32x4.convert_i32x4_s(wholeA)));
      uB = f32x4.add(uB, f32x4.mul(dB, f32x4.convert_i32x4_s(wholeB)));
    } while (at < x + 512);
    w += Q6K_BLOCK - Q6K_SCALES;
    const s = v128.load32_splat(x, SCALE);
    sumA = f32x4.add(sumA, f32x4.mul(s, uA));
    sumB = f32x4.add(sumB, f32x4.mul(s, uB));
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
