// Float vectors: silu, the weighted sum, and exp32, in binary32 operations that each round on their own (docs/numerics.md).
import { finite } from "./activation";

/** e^z of four values. */
@inline export function exp32x4(value: v128): v128 {
  const z = f32x4.max(f32x4.splat(-87), f32x4.min(f32x4.splat(87), value));
  const magic = f32x4.splat(12582912);
  const shifted = f32x4.add(f32x4.mul(z, f32x4.splat(1.44269504)), magic);
  const n = f32x4.sub(shifted, magic);
  const r = f32x4.sub(f32x4.sub(z, f32x4.mul(n, f32x4.splat(0.693359375))), f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let p = f32x4.splat(1.9875691500e-4);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.3981999507e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(8.3334519073e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(4.1665795894e-2));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.6666665459e-1));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(5.0000001201e-1));
  const y = f32x4.add(f32x4.add(f32x4.mul(p, f32x4.mul(r, r)), r), f32x4.splat(1));
  return i32x4.add(y, i32x4.shl(i32x4.sub(shifted, magic), 23));
}

/** y = exp32(z), n values rounded up to a multiple of 4. */
export function exponentials(z: usize, y: usize, n: i32): void {
  for (let i = 0; i < n; i += 4, z += 16, y += 16) v128.store(y, exp32x4(v128.load(z)));
}

/** h = silu(g) * u in place of g. 0 when a g, u or h is not finite. */
export function swiglu(g: usize, u: usize, n: i32): i32 {
  if (!finite(g, n) || !finite(u, n)) return 0;
  const one = f32x4.splat(1);
  let h = g;
  for (let i = 0; i < n; i += 4, h += 16, u += 16) {
    const v = v128.load(h);
    const gate = f32x4.div(v, f32x4.add(one, exp32x4(f32x4.neg(v))));
    v128.store(h, f32x4.mul(gate, v128.load(u)));
  }
  return finite(g, n);
}

/** sum += weight * y over n values, rounded up to a multiple of 4. */
export function addWeighted(sum: usize, y: usize, weight: f32, n: i32): void {
  const w = f32x4.splat(weight);
  for (let i = 0; i < n; i += 4, sum += 16, y += 16) {
    v128.store(sum, f32x4.add(v128.load(sum), f32x4.mul(w, v128.load(y))));
  }
}
