// Rows of one head in binary32, every operation rounded on its own. `d` is the head's width, a multiple of 4.
import { exp32x4 } from "../../../experts/canonical/kernel/vectors";

/** r32(r32(a0 + a1) + r32(a2 + a3)) */
@inline export function sumOfLanes(a: v128): f32 {
  return (f32x4.extract_lane(a, 0) + f32x4.extract_lane(a, 1)) + (f32x4.extract_lane(a, 2) + f32x4.extract_lane(a, 3));
}

/** The sum of squares in four lanes. */
@inline export function sumOfSquares(x: usize, d: usize): f32 {
  let sum = f32x4.splat(0);
  const end = x + (d << 2);
  for (; x < end; x += 16) {
    const v = v128.load(x);
    sum = f32x4.add(sum, f32x4.mul(v, v));
  }
  return sumOfLanes(sum);
}

/** to = x / sqrt(mean(x^2) + epsilon) * weight */
export function normHead(x: usize, weight: usize, d: usize, epsilon: f32, to: usize): void {
  const scale = f32x4.splat(<f32>1 / sqrt<f32>(sumOfSquares(x, d) / <f32>d + epsilon));
  const end = x + (d << 2);
  for (; x < end; x += 16, weight += 16, to += 16) {
    v128.store(to, f32x4.mul(f32x4.mul(v128.load(x), scale), v128.load(weight)));
  }
}

/** 1 / (1 + e^-v) */
@inline export function sigmoidx4(v: v128): v128 {
  const one = f32x4.splat(1);
  return f32x4.div(one, f32x4.add(one, exp32x4(f32x4.neg(v))));
}

/** v / (1 + e^-v) */
@inline export function silux4(v: v128): v128 {
  return f32x4.div(v, f32x4.add(f32x4.splat(1), exp32x4(f32x4.neg(v))));
}
