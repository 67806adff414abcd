// One block of a GGUF file (little-endian; layouts of ggml-common.h) to plain bytes: weights at `to`, scales and mins at `scales`.

/** The 12 packed bytes of a Q4_K or Q5_K block: 8 scales at `scales`, 8 mins right after them. */
function scalesAndMins(at: usize, scales: usize): void {
  for (let j: usize = 0; j < 4; j++) {
    const a = load<u8>(at + j), b = load<u8>(at + j, 4), c = load<u8>(at + j, 8);
    store<u8>(scales + j, a & 63);
    store<u8>(scales + j, b & 63, 8);
    store<u8>(scales + j, (c & 15) | ((a >> 6) << 4), 4);
    store<u8>(scales + j, (c >> 4) | ((b >> 6) << 4), 12);
  }
}

@inline function low(v: v128): v128 { return v128.and(v, i8x16.splat(15)); }
@inline function high(v: v128): v128 { return i8x16.shr_u(v, 4); }

export function decodeQ4K(at: usize, to: usize, scales: usize): void {
  scalesAndMins(at + 4, scales);
  at += 16;
  for (let c = 0; c < 4; c++, at += 32, to += 64) {
    const v0 = v128.load(at), v1 = v128.load(at, 16);
    v128.store(to, low(v0));
    v128.store(to, low(v1), 16);
    v128.store(to, high(v0), 32);
    v128.store(to, high(v1), 48);
  }
}

/** Bit j of each byte, as a fifth bit. */
@inline function fifth(bits: v128, j: i32): v128 {
  return i8x16.shl(v128.and(i8x16.shr_u(bits, j), i8x16.splat(1)), 4);
}

export function decodeQ5K(at: usize, to: usize, scales: usize): void {
  scalesAndMins(at + 4, scales);
  const h0 = v128.load(at, 16), h1 = v128.load(at, 32);
  at += 48;
  for (let c = 0; c < 8; c += 2, at += 32, to += 64) {
    const v0 = v128.load(at), v1 = v128.load(at, 16);
    v128.store(to, v128.or(low(v0), fifth(h0, c)));
    v128.store(to, v128.or(low(v1), fifth(h1, c)), 16);
    v128.store(to, v128.or(high(v0), fifth(h0, c + 1)), 32);
    v128.store(to, v128.or(high(v1), fifth(h1, c + 1)), 48);
  }
}

/** Two bits of each byte from bit `shift`, as bits 4 and 5. */
@inline function upper(bits: v128, shift: i32): v128 {
  return i8x16.shl(v128.and(i8x16.shr_u(bits, shift), i8x16.splat(3)), 4);
}

export function decodeQ6K(at: usize, to: usize, scales: usize): void {
  v128.store(scales, v128.load(at, 192));
  for (let h: usize = 0; h < 2; h++) {
    for (let i: usize = 0; i < 32; i += 16) {
      const l0 = v128.load(at + (h << 6) + i), l1 = v128.load(at + (h << 6) + i, 32), bits = v128.load(at + (h << 5) + i, 128);
      const out = to + (h << 7) + i;
      v128.store(out, v128.or(low(l0), upper(bits, 0)));
      v128.store(out, v128.or(low(l1), upper(bits, 2)), 32);
      v128.store(out, v128.or(high(l0), upper(bits, 4)), 64);
      v128.store(out, v128.or(high(l1), upper(bits, 6)), 96);
    }
  }
}

/** The binary32 value of binary16 bits; exact. */
export function half(at: usize): f32 {
  const h = <u32>load<u16>(at);
  const bits = ((h & 0x8000) << 16) | ((h & 0x7fff) << 13);
  return (h & 0x7c00) == 0x7c00 ? Infinity : reinterpret<f32>(bits) * reinterpret<f32>(0x77800000);
}
