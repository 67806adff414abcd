// Activation blocks (docs/numerics.md): 256 values of a row as 14-bit integers and one scale. In memory, block b of row r
// of R rows is one record of 640 bytes at x + (b * R + r) * 640:
//   0    256 x i16   q
//   512    8 x i16   per 32 values, S = sum of q: its low 9 bits ...
//   528    8 x i16   ... and S >> 9, so that both fit the 16-bit multiplier
//   544   16 x i32   per 16 values, -32 * sum of q (Q6_K stores its weights 32 too high)
//   608        f32   s
export const RECORD: usize = 640;
export const SUM_LOW: usize = 512;
export const SUM_HIGH: usize = 528;
export const SUM_32: usize = 544;
export const SCALE: usize = 608;

const FINITE: i32 = 0x7f800000;

/** The largest absolute value of `n` floats as bits; 0x7f800000 or more when one of them is not finite. */
export function largest(at: usize, n: i32): i32 {
  let most = i32x4.splat(0);
  const mask = i32x4.splat(0x7fffffff);
  const end = at + (<usize>(n & ~3) << 2);
  for (; at < end; at += 16) most = i32x4.max_s(most, v128.and(v128.load(at), mask));
  most = i32x4.max_s(most, v128.shuffle<i32>(most, most, 2, 3, 0, 1));
  let result = max(i32x4.extract_lane(most, 0), i32x4.extract_lane(most, 1));
  for (let i = 0; i < (n & 3); i++, at += 4) result = max(result, load<i32>(at) & 0x7fffffff);
  return result;
}

/** 1 when all of `n` floats are finite. */
export function finite(at: usize, n: i32): i32 {
  return i32(largest(at, n) < FINITE);
}

@inline function sum(v: v128): i32 {
  v = i32x4.add(v, v128.shuffle<i32>(v, v, 2, 3, 0, 1));
  return i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1);
}

function writeSums(record: usize): void {
  const ones = i16x8.splat(1);
  for (let j: usize = 0; j < 8; j++) {
    const q = record + (j << 6);
    const a = sum(i32x4.add(i32x4.dot_i16x8_s(v128.load(q), ones), i32x4.dot_i16x8_s(v128.load(q, 16), ones)));
    const b = sum(i32x4.add(i32x4.dot_i16x8_s(v128.load(q, 32), ones), i32x4.dot_i16x8_s(v128.load(q, 48), ones)));
    store<i32>(record + (j << 3), -32 * a, SUM_32);
    store<i32>(record + (j << 3), -32 * b, SUM_32 + 4);
    store<i16>(record + (j << 1), <i16>((a + b) & 511), SUM_LOW);
    store<i16>(record + (j << 1), <i16>((a + b) >> 9), SUM_HIGH);
  }
}

@inline function scaled(at: usize, inverse: v128): v128 {
  const magic = f32x4.splat(12582912);
  return i32x4.sub(f32x4.add(f32x4.mul(v128.load(at), inverse), magic), magic);
}

/** Quantises a row of n values (a multiple of 32) into records `stride` bytes apart. 0 when the row is not finite. */
export function quantise(row: usize, n: i32, record: usize, stride: usize): i32 {
  for (; n > 0; n -= 256, row += 1024, record += stride) {
    const count = min(n, 256);
    const most = largest(row, count);
    if (most >= FINITE) return 0;
    memory.fill(record, 0, RECORD);
    const m = reinterpret<f32>(most);
    if (m < reinterpret<f32>(0x1f800000)) continue; // 2^-64
    const inverse = f32x4.splat(<f32>8191 / m);
    for (let i: usize = 0; i < <usize>count; i += 8) {
      const at = row + (i << 2);
      v128.store(record + (i << 1), i16x8.narrow_i32x4_s(scaled(at, inverse), scaled(at + 16, inverse)));
    }
    store<f32>(record, m / <f32>8191, SCALE);
    writeSums(record);
  }
  return 1;
}

/** Takes a row that came quantised: n values of i16, then their scales. 0 when a q or a scale is out of its bounds. */
export function takeQuantised(q: usize, scales: usize, n: i32, record: usize, stride: usize): i32 {
  let wide = i16x8.splat(0);
  for (; n > 0; n -= 256, q += 512, scales += 4, record += stride) {
    const count = min(n, 256);
    const scale = load<f32>(scales);
    if (!(scale >= 0 && scale < Infinity)) return 0;
    memory.fill(record, 0, RECORD);
    for (let i: usize = 0; i < <usize>count << 1; i += 16) {
      const v = v128.load(q + i);
      wide = v128.or(wide, v128.or(i16x8.gt_s(v, i16x8.splat(8191)), i16x8.lt_s(v, i16x8.splat(-8191))));
      v128.store(record + i, v);
    }
    store<f32>(record, scale, SCALE);
    writeSums(record);
  }
  return i32(!v128.any_true(wide));
}
