// GGUF rows to panels (docs/numerics.md), once, when weights are loaded.
import { decodeQ4K, decodeQ5K, decodeQ6K, half } from "./decode";
import { Q4K_D, Q4K_DMIN, Q4K_MINS, Q4K_SCALES } from "./q4k";
import { Q5K_D, Q5K_DMIN, Q5K_MINS, Q5K_SCALES } from "./q5k";
import { Q6K_D, Q6K_SCALES } from "./q6k";
import { Q80_D } from "./q80";

// Work space: 4 rows x 256 weights as bytes, 4 x 16 scales and mins, then 128 vectors: pair t of all four rows, 16 bits each.
const SMALL: usize = 1024;
const PAIRS: usize = 1088;

@inline function wide(at: usize): v128 { return v128.load8x8_s(at); }

/** Bytes of four rows, 256 apart, to vectors that hold one pair of each row. */
function pairUp(bytes: usize, count: usize, to: usize): void {
  for (let k: usize = 0; k < count; k += 8, to += 64) {
    const a = wide(bytes + k), b = wide(bytes + k + 256), c = wide(bytes + k + 512), d = wide(bytes + k + 768);
    const ab = v128.shuffle<i32>(a, b, 0, 4, 1, 5), cd = v128.shuffle<i32>(c, d, 0, 4, 1, 5);
    v128.store(to, v128.shuffle<i64>(ab, cd, 0, 2));
    v128.store(to, v128.shuffle<i64>(ab, cd, 1, 3), 16);
    const ab2 = v128.shuffle<i32>(a, b, 2, 6, 3, 7), cd2 = v128.shuffle<i32>(c, d, 2, 6, 3, 7);
    v128.store(to, v128.shuffle<i64>(ab2, cd2, 0, 2), 32);
    v128.store(to, v128.shuffle<i64>(ab2, cd2, 1, 3), 48);
  }
}

@inline function left(at: usize, shift: i32): v128 { return i16x8.shl(v128.load(at), shift); }
@inline function or4(a: v128, b: v128, c: v128, d: v128): v128 { return v128.or(v128.or(a, b), v128.or(c, d)); }

function packNibbles(pairs: usize, w: usize): void {
  for (let i = 0; i < 32; i++, pairs += 64, w += 32) {
    v128.store(w, or4(v128.load(pairs), left(pairs + 16, 4), left(pairs + 32, 8), left(pairs + 48, 12)));
  }
}

function packFives(pairs: usize, w: usize): void {
  for (let j = 0; j < 8; j++, pairs += 256, w += 160) {
    const last = v128.load(pairs, 240);
    for (let i: usize = 0; i < 5; i++) {
      const bit = v128.and(i16x8.shr_u(last, 4 - <i32>i), i16x8.splat(1));
      const at = pairs + i * 48;
      v128.store(w + (i << 5), or4(bit, left(at, 1), left(at + 16, 6), left(at + 32, 11)));
    }
  }
}

function packSixes(pairs: usize, w: usize): void {
  for (let j = 0; j < 16; j++, pairs += 128, w += 96) {
    const seventh = v128.load(pairs, 96), eighth = v128.load(pairs, 112);
    v128.store(w, v128.or(v128.or(v128.load(pairs), left(pairs + 16, 6)), i16x8.shl(seventh, 12)));
    v128.store(w, v128.or(v128.or(v128.load(pairs, 32), left(pairs + 48, 6)), i16x8.shl(eighth, 12)), 32);
    const top = v128.or(i16x8.shl(i16x8.shr_u(seventh, 4), 12), i16x8.shl(i16x8.shr_u(eighth, 4), 14));
    v128.store(w, v128.or(v128.or(v128.load(pairs, 64), left(pairs + 80, 6)), top), 64);
  }
}

/** Puts d of four rows at `to`; rows that the matrix does not have get 0. Returns how many are not finite. */
function packHalves(at: usize, rowBytes: usize, rows: usize, to: usize): i32 {
  let bad = 0;
  for (let r: usize = 0; r < 4; r++) {
    const d = r < rows ? half(at + r * rowBytes) : 0;
    bad += i32(!isFinite(d));
    store<f32>(to + (r << 2), d);
  }
  return bad;
}

/** Q4_K, or Q5_K with `fives`. */
function packMinBlock(at: usize, rowBytes: usize, rows: usize, w: usize, half: usize, work: usize, fives: bool): i32 {
  for (let r: usize = 0; r < rows; r++) {
    const source = at + r * rowBytes, to = work + (r << 8), small = work + SMALL + (r << 4);
    if (fives) decodeQ5K(source, to, small);
    else decodeQ4K(source, to, small);
  }
  pairUp(work, 256, work + PAIRS);
  if (fives) packFives(work + PAIRS, w + 16 * half);
  else packNibbles(work + PAIRS, w + 16 * half);
  const scales = w + (fives ? Q5K_SCALES : Q4K_SCALES) + 4 * half, mins = w + (fives ? Q5K_MINS : Q4K_MINS) + 8 * half;
  for (let r: usize = 0; r < 4; r++) {
    for (let j: usize = 0; j < 8; j++) {
      const small = work + SMALL + (r << 4) + j;
      store<u8>(scales + (j << 3) + r, load<u8>(small));
      store<u8>(mins + ((j >> 1) << 4) + (r << 1) + (j & 1), load<u8>(small, 8));
    }
  }
  return packHalves(at, rowBytes, rows, w + (fives ? Q5K_D : Q4K_D) + 16 * half) +
    packHalves(at + 2, rowBytes, rows, w + (fives ? Q5K_DMIN : Q4K_DMIN) + 16 * half);
}

function packQ6KBlock(at: usize, rowBytes: usize, rows: usize, w: usize, half: usize, work: usize): i32 {
  for (let r: usize = 0; r < rows; r++) decodeQ6K(at + r * rowBytes, work + (r << 8), work + SMALL + (r << 4));
  pairUp(work, 256, work + PAIRS);
  packSixes(work + PAIRS, w + 16 * half);
  for (let r: usize = 0; r < 4; r++) {
    for (let j: usize = 0; j < 16; j++) {
      store<u8>(w + Q6K_SCALES + (j << 3) + 4 * half + r, load<u8>(work + SMALL + (r << 4) + j));
    }
  }
  return packHalves(at + 208, rowBytes, rows, w + Q6K_D + 16 * half);
}

function packQ80Block(at: usize, rowBytes: usize, rows: usize, w: usize, half: usize, work: usize): i32 {
  for (let r: usize = 0; r < rows; r++) memory.copy(work + (r << 8), at + r * rowBytes + 2, 32);
  pairUp(work, 32, work + PAIRS);
  for (let i: usize = 0; i < 8; i++) {
    const pairs = work + PAIRS + (i << 5);
    v128.store(w + (i << 5) + 16 * half, i8x16.narrow_i16x8_s(v128.load(pairs), v128.load(pairs, 16)));
  }
  return packHalves(at, rowBytes, rows, w + Q80_D + 16 * half);
}

function packBlock(type: i32, at: usize, rowBytes: usize, rows: usize, w: usize, half: usize, work: usize): i32 {
  if (type == 12) return packMinBlock(at, rowBytes, rows, w, half, work, false);
  if (type == 13) return packMinBlock(at, rowBytes, rows, w, half, work, true);
  if (type == 14) return packQ6KBlock(at, rowBytes, rows, w, half, work);
  return packQ80Block(at, rowBytes, rows, w, half, work);
}

/**
 * Half (0 or 1) of a panel of a block-quantised matrix, from up to four rows of its file, where a block has `fileBlock` bytes.
 * Returns how many scales are not finite.
 */
export function packBlocks(
  type: i32, at: usize, rowBytes: usize, rows: usize, fileBlock: usize, blocks: i32, w: usize, half: usize, block: usize,
  work: usize): i32 {
  let bad = 0;
  memory.fill(work, 0, PAIRS);
  for (let b = 0; b < blocks; b++, at += fileBlock, w += block) bad += packBlock(type, at, rowBytes, rows, w, half, work);
  return bad;
}

/** Half a panel of a float matrix: rows padded with zeros to a multiple of four values, four values of each row in turn. */
export function packFloats<T>(at: usize, inputs: usize, rows: usize, w: usize): i32 {
  let bad = 0;
  const fours = (inputs + 3) >> 2;
  memory.fill(w, 0, (fours << 4) * sizeof<T>());
  for (let r: usize = 0; r < rows; r++) {
    for (let i: usize = 0; i < inputs; i++) {
      const value = load<T>(at + (r * inputs + i) * sizeof<T>());
      const to = (i >> 2) * 16 + (r << 2) + (i & 3);
      store<T>(w + to * sizeof<T>(), value);
      if (isFloat<T>()) bad += i32(!isFinite(<f32>value));
      else if (isSigned<T>()) bad += i32((value & 0x7c00) == 0x7c00);
      else bad += i32((value & 0x7f80) == 0x7f80);
    }
  }
  return bad;
}
