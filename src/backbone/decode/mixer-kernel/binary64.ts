// Elementary functions in binary64, every operation rounded on its own: the same bits on every machine, unlike Math's.

/** Adding and subtracting 1.5 x 2^52 rounds to the nearest integer, ties to even. */
const ROUND: f64 = 6755399441055744;

/** e^z with the bits of src/experts/exp64.ts: 1/k! by Horner on the rest after z = n ln 2 + r. */
export function exponential(z: f64): f64 {
  const clamped = min<f64>(708, max<f64>(-708, z));
  const n = clamped * 1.4426950408889634 + ROUND - ROUND;
  const r = clamped - n * 0.6931471803691238 - n * 1.9082149292705877e-10;
  let p: f64 = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return reinterpret<f64>(reinterpret<i64>(p) + (<i64>n << 52));
}

/** ln x of a normal positive x = 2^e m, m within [sqrt(1/2), sqrt(2)]: ln m = 2 artanh s, s = (m - 1) / (m + 1). */
export function logarithm(x: f64): f64 {
  const bits = reinterpret<i64>(x);
  let e = <f64>((bits >> 52) - 1023);
  let m = reinterpret<f64>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    e += 1;
  }
  const f = m - 1;
  const s = f / (2 + f);
  const z = s * s;
  let p: f64 = 1.0 / 23.0;
  p = p * z + 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  // 2 s = f - s f exactly in the mathematics: the small terms are added first.
  const rest = s * (2 * z * p - f) + e * 1.9082149292705877e-10;
  return e * 0.6931471803691238 + (f + rest);
}

/** ln(1 + e^x), x itself beyond 20 (qwen35moe.md section 3). */
export function softplus(x: f64): f64 {
  if (x > 20) return x;
  const t = exponential(x);
  const u = 1 + t;
  return u == 1 ? t : logarithm(u) * (t / (u - 1)); // mends the rounding of 1 + t
}

export function sigmoid(x: f64): f64 {
  return 1 / (1 + exponential(-x));
}

/** base^exponent of a normal positive base. */
export function power(base: f64, exponent: f64): f64 {
  return exponential(exponent * logarithm(base));
}

/** sin(x + tail), |x| at most pi/4: Taylor's series, the tail to first order. */
function sineNear0(x: f64, tail: f64): f64 {
  const z = x * x;
  let p: f64 = 1.0 / 355687428096000.0;
  p = p * z - 1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  const cube = z * x;
  return x - ((z * (0.5 * tail - cube * p) - tail) + cube * (1.0 / 6.0));
}

/** cos(x + tail), |x| at most pi/4; what rounding takes from 1 - x^2/2 is put back. */
function cosineNear0(x: f64, tail: f64): f64 {
  const z = x * x;
  let p: f64 = 1.0 / 20922789888000.0;
  p = p * z - 1.0 / 87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  const half = 0.5 * z;
  const w = 1 - half;
  return w + ((1 - w - half) + (z * z * p - x * tail));
}

/**
 * sin(x + quarters pi/2) of 0 <= x <= 2^20. Cody and Waite's reduction: pi/2 in two parts of 33 bits, whose products with n are
 * exact, and a third part; what the difference loses goes into the tail.
 */
function turned(x: f64, quarters: i32): f64 {
  const n = x * 0.6366197723675814 + ROUND - ROUND;
  const near = x - n * 1.57079632673412561417;
  const second = n * 6.07710050630396597660e-11;
  const rest = near - second;
  const back = rest - near;
  const lost = near - (rest - back) - (second + back) - n * 2.02226624879595063154e-21;
  const y = rest + lost;
  const tail = lost - (y - rest);
  const quadrant = (<i32>n + quarters) & 3;
  const value = quadrant & 1 ? cosineNear0(y, tail) : sineNear0(y, tail);
  return quadrant & 2 ? -value : value;
}

/** 0 <= x <= 2^20. */
export function sine(x: f64): f64 {
  return turned(x, 0);
}

/** 0 <= x <= 2^20. */
export function cosine(x: f64): f64 {
  return turned(x, 1);
}
