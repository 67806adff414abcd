// Weights are held in panels of eight rows: two halves of four, whose vectors alternate, so that a panel is read as one stream.
// A vector holds two neighbouring weights of each row of its half (lane 2r + p is weight k + p of row r); an activation pair is
// broadcast to all of them, and nothing is summed across lanes. With one or few activation rows each type's own kernel multiplies
// straight from the panel. With many, a block is unpacked to 16 bits, scales multiplied in ("sheet"), and reused for all rows by
// the tiles below.
import { RECORD, SUM_HIGH, SUM_LOW } from "./activation";

/** Bytes of an unpacked block: 128 pairs of weights x 8 rows x 2. */
export const SHEET: usize = 4096;

@inline export function dot(w: v128, x: v128): v128 { return i32x4.dot_i16x8_s(w, x); }
@inline export function plus(a: v128, b: v128): v128 { return i32x4.add(a, b); }

/** Of eight 16-bit scales (of one sub-block), those of the first half doubled: one for each lane of a weight vector. */
@inline export function firstScales(s: v128): v128 { return v128.shuffle<i16>(s, s, 0, 0, 1, 1, 2, 2, 3, 3); }
@inline export function secondScales(s: v128): v128 { return v128.shuffle<i16>(s, s, 4, 4, 5, 5, 6, 6, 7, 7); }

/**
 * f(M) of half a panel: mins times the sums of 32 activations of a record. `mins` are those of the half: eight bytes are two
 * sub-blocks side by side, row after row; the other half's follow.
 */
@inline export function minDot(mins: usize, x: usize): v128 {
  const m0 = v128.load8x8_u(mins), m1 = v128.load8x8_u(mins, 16), m2 = v128.load8x8_u(mins, 32), m3 = v128.load8x8_u(mins, 48);
  const low = plus(
    plus(dot(m0, v128.load32_splat(x, SUM_LOW)), dot(m1, v128.load32_splat(x, SUM_LOW + 4))),
    plus(dot(m2, v128.load32_splat(x, SUM_LOW + 8)), dot(m3, v128.load32_splat(x, SUM_LOW + 12))));
  const high = plus(
    plus(dot(m0, v128.load32_splat(x, SUM_HIGH)), dot(m1, v128.load32_splat(x, SUM_HIGH + 4))),
    plus(dot(m2, v128.load32_splat(x, SUM_HIGH + 8)), dot(m3, v128.load32_splat(x, SUM_HIGH + 12))));
  return f32x4.convert_i32x4_s(plus(low, i32x4.shl(high, 9)));
}

// V8 moves all loads of a loop's body to its start: the tile's body holds as many as there are registers for, and is not unrolled.

/** Dot products of `pairs` pairs of a sheet with four records: 8 vectors of f32(I), row by row, one half and the other. */
export function tile4(sheet: usize, x: usize, pairs: i32, out: usize): void {
  let a0 = i32x4.splat(0), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  const end = sheet + (<usize>pairs << 5);
  do {
    const a = v128.load(sheet), b = v128.load(sheet, 16);
    let v = v128.load32_splat(x);
    a0 = plus(a0, dot(a, v)); b0 = plus(b0, dot(b, v));
    v = v128.load32_splat(x, RECORD);
    a1 = plus(a1, dot(a, v)); b1 = plus(b1, dot(b, v));
    v = v128.load32_splat(x, 2 * RECORD);
    a2 = plus(a2, dot(a, v)); b2 = plus(b2, dot(b, v));
    v = v128.load32_splat(x, 3 * RECORD);
    a3 = plus(a3, dot(a, v)); b3 = plus(b3, dot(b, v));
    sheet += 32;
    x += 4;
  } while (sheet < end);
  v128.store(out, f32x4.convert_i32x4_s(a0));
  v128.store(out, f32x4.convert_i32x4_s(b0), 16);
  v128.store(out, f32x4.convert_i32x4_s(a1), 32);
  v128.store(out, f32x4.convert_i32x4_s(b1), 48);
  v128.store(out, f32x4.convert_i32x4_s(a2), 64);
  v128.store(out, f32x4.convert_i32x4_s(b2), 80);
  v128.store(out, f32x4.convert_i32x4_s(a3), 96);
  v128.store(out, f32x4.convert_i32x4_s(b3), 112);
}

/** The same with one record (an even number of pairs): 2 vectors. */
export function tile1(sheet: usize, x: usize, pairs: i32, out: usize): void {
  let a0 = i32x4.splat(0), a1 = a0, b0 = a0, b1 = a0;
  const end = sheet + (<usize>pairs << 5);
  do {
    let v = v128.load32_splat(x);
    a0 = plus(a0, dot(v128.load(sheet), v)); b0 = plus(b0, dot(v128.load(sheet, 16), v));
    v = v128.load32_splat(x, 4);
    a1 = plus(a1, dot(v128.load(sheet, 32), v)); b1 = plus(b1, dot(v128.load(sheet, 48), v));
    sheet += 64;
    x += 8;
  } while (sheet < end);
  v128.store(out, f32x4.convert_i32x4_s(plus(a0, a1)));
  v128.store(out, f32x4.convert_i32x4_s(plus(b0, b1)), 16);
}
