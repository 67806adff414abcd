// The delta rule on one head's state S (d x d), column by column: m_j, change_j and o_j need column j alone, so a group of columns
// stays in the nearest cache while all rows of a span pass. Groups of 16 columns lie one after the other as (d, 16); a rest of
// d mod 16 columns in groups of 4. Sums run over i ascending.
//   S = keep S;  m = S^T k;  change = beta (v - m);  S += k (outer) change;  o = S^T q

/** `row`: bytes from one row's q, k, v to the next; `gateRow`: from one keep or beta to the next; o rows are gateRow * d apart. */
export function stateHead(
  state: usize, tokens: u32, q: usize, k: usize, v: usize, row: usize,
  keep: usize, beta: usize, gateRow: usize, d: usize, o: usize): void {
  const width = d << 2;
  for (let j: usize = 0; j < width;) {
    const wide = j + 64 <= width;
    for (let t: usize = 0; t < <usize>tokens; t++) {
      const at = t * row, gate = t * gateRow;
      const g = load<f32>(keep + gate), b = load<f32>(beta + gate), to = o + gate * d + j;
      if (wide) columns16(state, q + at, k + at, v + at + j, g, b, width, to);
      else columns4(state, q + at, k + at, v + at + j, g, b, width, to);
    }
    state += d << (wide ? 6 : 4);
    j += wide ? 64 : 16;
  }
}

function columns16(state: usize, q: usize, k: usize, v: usize, keep: f32, beta: f32, width: usize, o: usize): void {
  const g = f32x4.splat(keep), b = f32x4.splat(beta);
  let m0 = f32x4.splat(0), m1 = m0, m2 = m0, m3 = m0;
  let s = state;
  for (let i: usize = 0; i < width; i += 4, s += 64) {
    const ki = v128.load32_splat(k + i);
    const s0 = f32x4.mul(v128.load(s), g), s1 = f32x4.mul(v128.load(s, 16), g);
    const s2 = f32x4.mul(v128.load(s, 32), g), s3 = f32x4.mul(v128.load(s, 48), g);
    v128.store(s, s0); v128.store(s, s1, 16); v128.store(s, s2, 32); v128.store(s, s3, 48);
    m0 = f32x4.add(m0, f32x4.mul(s0, ki)); m1 = f32x4.add(m1, f32x4.mul(s1, ki));
    m2 = f32x4.add(m2, f32x4.mul(s2, ki)); m3 = f32x4.add(m3, f32x4.mul(s3, ki));
  }
  const c0 = f32x4.mul(b, f32x4.sub(v128.load(v), m0)), c1 = f32x4.mul(b, f32x4.sub(v128.load(v, 16), m1));
  const c2 = f32x4.mul(b, f32x4.sub(v128.load(v, 32), m2)), c3 = f32x4.mul(b, f32x4.sub(v128.load(v, 48), m3));
  let o0 = f32x4.splat(0), o1 = o0, o2 = o0, o3 = o0;
  s = state;
  for (let i: usize = 0; i < width; i += 4, s += 64) {
    const ki = v128.load32_splat(k + i), qi = v128.load32_splat(q + i);
    const s0 = f32x4.add(v128.load(s), f32x4.mul(ki, c0)), s1 = f32x4.add(v128.load(s, 16), f32x4.mul(ki, c1));
    const s2 = f32x4.add(v128.load(s, 32), f32x4.mul(ki, c2)), s3 = f32x4.add(v128.load(s, 48), f32x4.mul(ki, c3));
    v128.store(s, s0); v128.store(s, s1, 16); v128.store(s, s2, 32); v128.store(s, s3, 48);
    o0 = f32x4.add(o0, f32x4.mul(s0, qi)); o1 = f32x4.add(o1, f32x4.mul(s1, qi));
    o2 = f32x4.add(o2, f32x4.mul(s2, qi)); o3 = f32x4.add(o3, f32x4.mul(s3, qi));
  }
  v128.store(o, o0); v128.store(o, o1, 16); v128.store(o, o2, 32); v128.store(o, o3, 48);
}

function columns4(state: usize, q: usize, k: usize, v: usize, keep: f32, beta: f32, width: usize, o: usize): void {
  const g = f32x4.splat(keep);
  let m = f32x4.splat(0), read = m;
  for (let i: usize = 0, s = state; i < width; i += 4, s += 16) {
    const decayed = f32x4.mul(v128.load(s), g);
    v128.store(s, decayed);
    m = f32x4.add(m, f32x4.mul(decayed, v128.load32_splat(k + i)));
  }
  const change = f32x4.mul(f32x4.splat(beta), f32x4.sub(v128.load(v), m));
  for (let i: usize = 0, s = state; i < width; i += 4, s += 16) {
    const updated = f32x4.add(v128.load(s), f32x4.mul(v128.load32_splat(k + i), change));
    v128.store(s, updated);
    read = f32x4.add(read, f32x4.mul(updated, v128.load32_splat(q + i)));
  }
  v128.store(o, read);
}
