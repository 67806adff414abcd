/**
 * Binary32 arithmetic on integers, in WGSL. A shader compiler may fuse, reorder or flush real floats; integers are exact there, so
 * canonical-1's float steps run on the bits (numerics.md section 5): round to nearest even, denormals kept, infinities made by overflow.
 * Operands are finite or infinite bit patterns; a NaN never arises from the finite inputs that the engine lets in, except inf - inf
 * and inf * 0, which give the quiet NaN so that the check of stored vectors sees them.
 */
export const floatWgsl = /* wgsl */ `
const QUIET_NAN = 0x7fc00000u;
const INFINITY = 0x7f800000u;

fn is_finite(v: u32) -> bool { return (v & INFINITY) != INFINITY; }

// Shifts right, keeping a sticky lowest bit.
fn shift_sticky(a: u32, n: u32) -> u32 {
  if (n == 0u) { return a; }
  if (n > 31u) { return select(0u, 1u, a != 0u); }
  return (a >> n) | select(0u, 1u, (a << (32u - n)) != 0u);
}

// sig: leading one at bit 26, three guard bits below the 24 of the result; exponent biased.
fn pack(sign: u32, exponent: i32, significand: u32) -> u32 {
  if (significand == 0u) { return sign; }
  var e = exponent;
  var sig = significand;
  if (e <= 0) { sig = shift_sticky(sig, u32(1 - e)); e = 0; }
  let guard = sig & 7u;
  var m = sig >> 3u;
  if (guard > 4u || (guard == 4u && (m & 1u) == 1u)) { m = m + 1u; }
  if (e == 0) { return sign | m; }
  if (m == 0x1000000u) { m = m >> 1u; e = e + 1; }
  if (e >= 255) { return sign | INFINITY; }
  return sign | (u32(e) << 23u) | (m & 0x7fffffu);
}

// x = significand (24 bits, leading one at bit 23) * 2^(exponent - 150); zero keeps significand 0.
fn unpack(x: u32) -> vec2<i32> {
  let e = i32((x >> 23u) & 255u);
  let m = x & 0x7fffffu;
  if (e != 0) { return vec2<i32>(e, i32(m | 0x800000u)); }
  if (m == 0u) { return vec2<i32>(0, 0); }
  let s = countLeadingZeros(m) - 8u;
  return vec2<i32>(1 - i32(s), i32(m << s));
}

fn f_mul(x: u32, y: u32) -> u32 {
  let sign = (x ^ y) & 0x80000000u;
  if (!is_finite(x) || !is_finite(y)) {
    if ((x & 0x7fffffffu) == 0u || (y & 0x7fffffffu) == 0u) { return QUIET_NAN; }
    if ((x & 0x7fffffffu) > INFINITY || (y & 0x7fffffffu) > INFINITY) { return QUIET_NAN; }
    return sign | INFINITY;
  }
  let a = unpack(x);
  let b = unpack(y);
  if (a.y == 0 || b.y == 0) { return sign; }
  let mx = u32(a.y);
  let my = u32(b.y);
  let ah = mx >> 12u; let al = mx & 0xfffu;
  let bh = my >> 12u; let bl = my & 0xfffu;
  let mid = ah * bl + al * bh;
  let lo = al * bl + ((mid & 0xfffu) << 12u);
  let hi = ah * bh + (mid >> 12u) + (lo >> 24u);
  let low = lo & 0xffffffu;
  var e = a.x + b.x - 127;
  // The product's leading bit is at 46 or 47, so hi's at 22 or 23; it is wanted at 26.
  if ((hi & 0x800000u) != 0u) {
    e = e + 1;
    return pack(sign, e, (hi << 3u) | (low >> 21u) | select(0u, 1u, (low & 0x1fffffu) != 0u));
  }
  return pack(sign, e, (hi << 4u) | (low >> 20u) | select(0u, 1u, (low & 0xfffffu) != 0u));
}

fn f_add(x: u32, y: u32) -> u32 {
  var a = x; var b = y;
  if ((a & 0x7fffffffu) < (b & 0x7fffffffu)) { a = y; b = x; }
  let sign = a & 0x80000000u;
  if (!is_finite(a)) {
    if ((a & 0x7fffffffu) > INFINITY) { return QUIET_NAN; }
    if (!is_finite(b) && a != b) { return QUIET_NAN; }
    return a;
  }
  if ((b & 0x7fffffffu) == 0u) {
    if ((a & 0x7fffffffu) == 0u) { return a & b; }
    return a;
  }
  var ea = i32((a >> 23u) & 255u);
  var eb = i32((b >> 23u) & 255u);
  var ma = a & 0x7fffffu;
  var mb = b & 0x7fffffu;
  if (ea == 0) { ea = 1; } else { ma = ma | 0x800000u; }
  if (eb == 0) { eb = 1; } else { mb = mb | 0x800000u; }
  ma = ma << 3u;
  mb = shift_sticky(mb << 3u, u32(ea - eb));
  var e = ea;
  var sig: u32;
  if (sign == (b & 0x80000000u)) {
    sig = ma + mb;
    if ((sig & 0x8000000u) != 0u) { sig = (sig >> 1u) | (sig & 1u); e = e + 1; }
  } else {
    sig = ma - mb;
    if (sig == 0u) { return 0u; }
  }
  let lead = i32(countLeadingZeros(sig)) - 5;
  if (lead > 0) { let s = min(lead, e - 1); sig = sig << u32(s); e = e - s; }
  if ((sig & 0x4000000u) == 0u) {
    let guard = sig & 7u;
    var m = sig >> 3u;
    if (guard > 4u || (guard == 4u && (m & 1u) == 1u)) { m = m + 1u; }
    return sign | m;
  }
  return pack(sign, e, sig);
}

fn f_negate(x: u32) -> u32 { return x ^ 0x80000000u; }
fn f_sub(x: u32, y: u32) -> u32 { return f_add(x, f_negate(y)); }

// Finite operands, y not zero (canonical-1 divides by a block's maximum, by 8191 and by 1 + exp).
fn f_div(x: u32, y: u32) -> u32 {
  let sign = (x ^ y) & 0x80000000u;
  if (!is_finite(x)) { return select(sign | INFINITY, QUIET_NAN, (x & 0x7fffffffu) > INFINITY || !is_finite(y)); }
  if (!is_finite(y)) { return select(sign, QUIET_NAN, (y & 0x7fffffffu) > INFINITY); }
  let a = unpack(x);
  let b = unpack(y);
  if (a.y == 0) { return sign; }
  var rest = u32(a.y);
  let divisor = u32(b.y);
  var e = a.x - b.x + 127;
  if (rest < divisor) { rest = rest << 1u; e = e - 1; }
  var quotient = 0u;
  for (var i = 0u; i < 27u; i = i + 1u) {
    quotient = quotient << 1u;
    if (rest >= divisor) { rest = rest - divisor; quotient = quotient | 1u; }
    rest = rest << 1u;
  }
  return pack(sign, e, quotient | select(0u, 1u, rest != 0u));
}

fn f_from_int(v: i32) -> u32 {
  if (v == 0) { return 0u; }
  let sign = select(0u, 0x80000000u, v < 0);
  let a = u32(abs(v));
  let lead = countLeadingZeros(a);
  var sig: u32;
  if (lead >= 5u) { sig = a << (lead - 5u); } else { sig = shift_sticky(a, 5u - lead); }
  return pack(sign, i32(158u - lead), sig);
}

// Nearest integer, ties to even; |v| < 2^22.
fn nearest_int(v: u32) -> i32 {
  let shift = 150 - i32((v >> 23u) & 255u);
  if (shift > 25) { return 0; }
  let m = (v & 0x7fffffu) | 0x800000u;
  let kept = m >> u32(shift);
  let rest = m & ((1u << u32(shift)) - 1u);
  let half = 1u << u32(shift - 1);
  let up = rest > half || (rest == half && (kept & 1u) == 1u);
  let n = i32(kept + select(0u, 1u, up));
  return select(n, -n, (v & 0x80000000u) != 0u);
}

// a < b for finite values.
fn f_less(a: u32, b: u32) -> bool {
  let x = select(i32(a), -i32(a & 0x7fffffffu), (a & 0x80000000u) != 0u);
  let y = select(i32(b), -i32(b & 0x7fffffffu), (b & 0x80000000u) != 0u);
  return x < y;
}

// numerics.md: exp32, Cephes' polynomial in binary32 steps.
fn exp32(z0: u32) -> u32 {
  var z = z0;
  if (f_less(z, 0xc2ae0000u)) { z = 0xc2ae0000u; }
  if (f_less(0x42ae0000u, z)) { z = 0x42ae0000u; }
  let n = nearest_int(f_mul(z, 0x3fb8aa3bu));
  let nf = f_from_int(n);
  let r = f_sub(f_sub(z, f_mul(nf, 0x3f318000u)), f_mul(nf, 0xb95e8083u));
  var p = 0x39506967u;
  p = f_add(f_mul(p, r), 0x3ab743ceu);
  p = f_add(f_mul(p, r), 0x3c088908u);
  p = f_add(f_mul(p, r), 0x3d2aa9c1u);
  p = f_add(f_mul(p, r), 0x3e2aaaaau);
  p = f_add(f_mul(p, r), 0x3f000000u);
  let y = f_add(f_add(f_mul(p, f_mul(r, r)), r), 0x3f800000u);
  return y + (u32(n) << 23u);
}

fn silu(v: u32) -> u32 {
  return f_div(v, f_add(0x3f800000u, exp32(f_negate(v))));
}

// binary16 bits, widened exactly.
fn widen_half(h: u32) -> u32 {
  let sign = (h & 0x8000u) << 16u;
  let e = (h >> 10u) & 31u;
  let m = h & 0x3ffu;
  if (e == 31u) { return sign | INFINITY | (m << 13u); }
  if (e != 0u) { return sign | ((e + 112u) << 23u) | (m << 13u); }
  if (m == 0u) { return sign; }
  let s = countLeadingZeros(m) - 21u;
  return sign | ((113u - s) << 23u) | (((m << s) & 0x3ffu) << 13u);
}
`;
