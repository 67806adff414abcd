// F32, F16 and BF16 weights, widened exactly. A panel holds four rows, four values of each in turn: one vector is one row's
// lanes i mod 4. T is f32, i16 (F16) or u16 (BF16).

@inline function widen<T>(at: usize): v128 {
  if (isFloat<T>()) return v128.load(at);
  if (!isSigned<T>()) return i32x4.shl(v128.load16x4_u(at), 16);
  // Sign and 15 bits to their places in binary32, then 2^112 mends the exponent (subnormals too).
  const bits = v128.and(i32x4.shl(v128.load16x4_s(at), 13), i32x4.splat(0x8fffe000));
  return f32x4.mul(bits, f32x4.splat(reinterpret<f32>(0x77800000)));
}

@inline function step<T>(sum: v128, w: usize, x: v128): v128 { return f32x4.add(sum, f32x4.mul(widen<T>(w), x)); }

/** r32(r32(a0 + a1) + r32(a2 + a3)) of four accumulators: 4 outputs. */
@inline function lanes(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab0 = v128.shuffle<i32>(a, b, 0, 4, 2, 6), ab1 = v128.shuffle<i32>(a, b, 1, 5, 3, 7); // a0 b0 a2 b2, a1 b1 a3 b3
  const cd0 = v128.shuffle<i32>(c, d, 0, 4, 2, 6), cd1 = v128.shuffle<i32>(c, d, 1, 5, 3, 7);
  const ab = f32x4.add(ab0, ab1), cd = f32x4.add(cd0, cd1); // a01 b01 a23 b23
  return f32x4.add(v128.shuffle<i64>(ab, cd, 0, 2), v128.shuffle<i64>(ab, cd, 1, 3));
}

/** One panel times one row of `fours` x 4 values: 4 outputs. */
@inline export function floatRow<T>(w: usize, x: usize, fours: i32): v128 {
  let a = f32x4.splat(0), b = a, c = a, d = a;
  for (let i = 0; i < fours; i++) {
    const v = v128.load(x);
    a = step<T>(a, w, v);
    b = step<T>(b, w + 4 * sizeof<T>(), v);
    c = step<T>(c, w + 8 * sizeof<T>(), v);
    d = step<T>(d, w + 12 * sizeof<T>(), v);
    w += 16 * sizeof<T>();
    x += 16;
  }
  return lanes(a, b, c, d);
}

/** One panel times two rows, the second `next` bytes after the first; their outputs go to y and y2. */
@inline export function floatRows2<T>(w: usize, x: usize, next: usize, fours: i32, y: usize, y2: usize): void {
  let a = f32x4.splat(0), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (let i = 0; i < fours; i++) {
    const v = v128.load(x), v2 = v128.load(x + next);
    const w0 = widen<T>(w), w1 = widen<T>(w + 4 * sizeof<T>());
    a = f32x4.add(a, f32x4.mul(w0, v)); e = f32x4.add(e, f32x4.mul(w0, v2));
    b = f32x4.add(b, f32x4.mul(w1, v)); f = f32x4.add(f, f32x4.mul(w1, v2));
    const w2 = widen<T>(w + 8 * sizeof<T>()), w3 = widen<T>(w + 12 * sizeof<T>());
    c = f32x4.add(c, f32x4.mul(w2, v)); g = f32x4.add(g, f32x4.mul(w2, v2));
    d = f32x4.add(d, f32x4.mul(w3, v)); h = f32x4.add(h, f32x4.mul(w3, v2));
    w += 16 * sizeof<T>();
    x += 16;
  }
  v128.store(y, lanes(a, b, c, d));
  v128.store(y2, lanes(e, f, g, h));
}
