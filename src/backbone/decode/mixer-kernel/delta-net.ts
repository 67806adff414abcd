// The gated delta net between its projections (qwen35moe.md section 3), in stages. Rows of all spans lie one below the other;
// a row of `mix` has q of Nk key heads, k of Nk key heads, v of Nv value heads, each d wide: `channels` values.
// A text's memory: the last (taps - 1) rows of `mix`, oldest first; then, `state` bytes on, Nv states of d x d (columns.ts).
import { sigmoid, softplus, exponential } from "./binary64";
import { stateHead } from "./columns";
import { normHead, silux4, sumOfSquares } from "./heads";
import { MEMORY, SPAN } from "./spans";

/** Keeps a near-zero q or k finite: the square of llama.cpp's bound on the length, far below any real one. */
const LENGTH_EPSILON: f32 = 1e-12;

/** y_t[c] = silu(sum_j w[j][c] * mix_(t - taps + 1 + j)[c]), j ascending; before a span's first row come the remembered ones. */
export function convolve(table: usize, spans: i32, mix: usize, y: usize, weights: usize, channels: usize, taps: usize): void {
  const bytes = channels << 2;
  const kept = taps - 1;
  for (; spans > 0; spans--, table += SPAN) {
    const tokens = <usize>load<u32>(table), past = <usize>load<u32>(table, MEMORY);
    for (let t: usize = 0; t < tokens; t++, y += bytes) {
      for (let c: usize = 0; c < bytes; c += 16) {
        let sum = f32x4.splat(0);
        for (let j: usize = 0; j < taps; j++) {
          const row = t + j < kept ? past + (t + j) * bytes : mix + (t + j - kept) * bytes;
          const product = f32x4.mul(v128.load(weights + j * bytes + c), v128.load(row + c));
          sum = j == 0 ? product : f32x4.add(sum, product);
        }
        v128.store(y + c, silux4(sum));
      }
    }
    if (tokens < kept) memory.copy(past, past + tokens * bytes, (kept - tokens) * bytes);
    const fresh = min(tokens, kept);
    memory.copy(past + (kept - fresh) * bytes, mix + (tokens - fresh) * bytes, fresh * bytes);
    mix += tokens * bytes;
  }
}

/** q and k at length 1, per head, in place; q also by 1 / sqrt(d). */
export function normaliseKeys(y: usize, rows: i32, channels: usize, keyHeads: i32, d: usize): void {
  const scale = <f32>1 / sqrt<f32>(<f32>d);
  for (; rows > 0; rows--, y += channels << 2) {
    let at = y;
    for (let head = 0; head < 2 * keyHeads; head++) {
      const length = <f32>1 / sqrt<f32>(sumOfSquares(at, d) + LENGTH_EPSILON);
      const factor = f32x4.splat(head < keyHeads ? length * scale : length);
      const end = at + (d << 2);
      for (; at < end; at += 16) v128.store(at, f32x4.mul(v128.load(at), factor));
    }
  }
}

/** keep = e^(decay * softplus(a + timeStep)) and beta = sigmoid(b), (rows, heads) each: in binary64, rounded once at the end. */
export function openGates(
  a: usize, b: usize, decay: usize, timeStep: usize, rows: i32, heads: i32, keep: usize, beta: usize): void {
  for (; rows > 0; rows--) {
    for (let head: usize = 0; head < <usize>heads; head++, a += 4, b += 4, keep += 4, beta += 4) {
      const step = softplus(<f64>load<f32>(a) + <f64>load<f32>(timeStep + (head << 2)));
      store<f32>(keep, <f32>exponential(<f64>load<f32>(decay + (head << 2)) * step));
      store<f32>(beta, <f32>sigmoid(load<f32>(b)));
    }
  }
}

/** The delta rule: updates each span's states row by row, and reads them: `read` (rows, Nv, d). Value head h has key head h mod Nk. */
export function deltaRule(
  table: usize, spans: i32, y: usize, keep: usize, beta: usize, state: usize,
  keyHeads: usize, valueHeads: usize, d: usize, read: usize): void {
  const head = d << 2;
  const row = (keyHeads + keyHeads + valueHeads) * head;
  for (; spans > 0; spans--, table += SPAN) {
    const tokens = load<u32>(table);
    const states = <usize>load<u32>(table, MEMORY) + state;
    for (let h: usize = 0; h < valueHeads; h++) {
      const q = y + (h % keyHeads) * head;
      stateHead(
        states + h * d * head, tokens, q, q + keyHeads * head, y + (2 * keyHeads + h) * head, row,
        keep + (h << 2), beta + (h << 2), valueHeads << 2, d, read + h * head);
    }
    y += <usize>tokens * row;
    keep += (<usize>tokens * valueHeads) << 2;
    beta += (<usize>tokens * valueHeads) << 2;
    read += <usize>tokens * valueHeads * head;
  }
}

/** read = norm(read) * weight * silu(z), head by head, in place. `heads` of all rows together. */
export function gatedNorm(read: usize, z: usize, weight: usize, heads: i32, d: usize, epsilon: f32): void {
  for (; heads > 0; heads--) {
    normHead(read, weight, d, epsilon, read);
    const end = read + (d << 2);
    for (; read < end; read += 16, z += 16) v128.store(read, f32x4.mul(v128.load(read), silux4(v128.load(z))));
  }
}
