// Gated attention between its projections (qwen35moe.md section 4), in stages. Rows of all spans lie one below the other.
// A text's memory: `capacity` rows of keys (kvHeads x d), normed and rotated, then as many rows of values.
// Softmax goes over blocks of 32 keys, counted from the text's first token, with the largest score so far: a row's bits depend on
// nothing but its position and the keys before it, and a block is read once for all rows of a span.
import { exp32x4 } from "../../../experts/canonical/kernel/vectors";
import { cosine, power, sine } from "./binary64";
import { normHead, sigmoidx4, sumOfLanes } from "./heads";
import { CAPACITY, MEMORY, POSITION, SPAN } from "./spans";

/** Keys of a block. */
const BLOCK: usize = 32;

/**
 * cos and sin of the angle position * theta^(-2i / rotaryDims), i < rotaryDims / 2, computed in binary64: `turns`
 * (rows, rotaryDims / 2, 2). `frequencies` is room for rotaryDims / 2 doubles.
 */
export function rotations(table: usize, spans: i32, theta: f64, rotaryDims: usize, frequencies: usize, turns: usize): void {
  const pairs = rotaryDims >> 1;
  for (let i: usize = 0; i < pairs; i++) {
    store<f64>(frequencies + (i << 3), power(theta, <f64>(i << 1) / -<f64>rotaryDims));
  }
  for (; spans > 0; spans--, table += SPAN) {
    const first = load<u32>(table, POSITION), end = first + load<u32>(table);
    for (let position = first; position < end; position++) {
      for (let i: usize = 0; i < pairs; i++, turns += 8) {
        const angle = <f64>position * load<f64>(frequencies + (i << 3));
        store<f32>(turns, <f32>cosine(angle));
        store<f32>(turns, <f32>sine(angle), 4);
      }
    }
  }
}

/** Turns the pairs (i, i + pairs) of a head in place. */
function rotate(x: usize, turns: usize, pairs: usize): void {
  const far = pairs << 2;
  for (let i: usize = 0; i < pairs; i++, x += 4, turns += 8) {
    const c = load<f32>(turns), s = load<f32>(turns, 4), low = load<f32>(x), high = load<f32>(x + far);
    store<f32>(x, low * c - high * s);
    store<f32>(x + far, low * s + high * c);
  }
}

/** Appends each span's keys (normed, rotated) and values (rows, kvHeads x d) to its text's memory. */
export function remember(
  table: usize, spans: i32, k: usize, v: usize, norm: usize, epsilon: f32, turns: usize, pairs: usize,
  kvHeads: usize, d: usize): void {
  const head = d << 2, row = kvHeads * head;
  for (; spans > 0; spans--, table += SPAN) {
    const tokens = <usize>load<u32>(table);
    let to = <usize>load<u32>(table, MEMORY) + <usize>load<u32>(table, POSITION) * row;
    memory.copy(to + <usize>load<u32>(table, CAPACITY) * row, v, tokens * row);
    v += tokens * row;
    for (let t: usize = 0; t < tokens; t++, turns += pairs << 3) {
      for (let h: usize = 0; h < kvHeads; h++, k += head, to += head) {
        normHead(k, norm, d, epsilon, to);
        rotate(to, turns, pairs);
      }
    }
  }
}

/** q (rows, heads, d) of `queries` (rows, heads, q | gate): normed, rotated, times 1 / sqrt(d). */
export function prepareQueries(
  queries: usize, rows: i32, norm: usize, epsilon: f32, turns: usize, pairs: usize, heads: i32, d: usize, q: usize): void {
  const scale = f32x4.splat(<f32>1 / sqrt<f32>(<f32>d));
  for (; rows > 0; rows--, turns += pairs << 3) {
    for (let h = 0; h < heads; h++, queries += d << 3) {
      normHead(queries, norm, d, epsilon, q);
      rotate(q, turns, pairs);
      const end = q + (d << 2);
      for (; q < end; q += 16) v128.store(q, f32x4.mul(v128.load(q), scale));
    }
  }
}

/** read (rows, heads, d) = sum_j e^(s_j - top) v_j, and per row and head `sums` (2 floats): top, and sum_j e^(s_j - top). */
export function attend(
  table: usize, spans: i32, q: usize, heads: usize, kvHeads: usize, d: usize, sums: usize, read: usize, scores: usize): void {
  const head = d << 2, cacheRow = kvHeads * head, group = heads / kvHeads;
  for (; spans > 0; spans--, table += SPAN) {
    const tokens = <usize>load<u32>(table), position = <usize>load<u32>(table, POSITION);
    const keys = <usize>load<u32>(table, MEMORY), values = keys + <usize>load<u32>(table, CAPACITY) * cacheRow;
    memory.fill(read, 0, tokens * heads * head);
    for (let i: usize = 0; i < tokens * heads; i++) {
      store<f32>(sums + (i << 3), -Infinity);
      store<f32>(sums + (i << 3), 0, 4);
    }
    for (let kv: usize = 0; kv < kvHeads; kv++) {
      for (let first: usize = 0; first < position + tokens; first += BLOCK) {
        const at = first * cacheRow + kv * head;
        for (let t = first > position ? first - position : 0; t < tokens; t++) {
          const count = min(BLOCK, position + t + 1 - first);
          const from = t * heads + kv * group;
          for (let h = from; h < from + group; h++) {
            const rescale = weigh(q + h * head, keys + at, cacheRow, count, d, sums + (h << 3), scores);
            addValues(read + h * head, rescale, scores, values + at, cacheRow, count, head);
          }
        }
      }
    }
    q += tokens * heads * head;
    read += tokens * heads * head;
    sums += (tokens * heads) << 3;
  }
}

/** Writes e^(s_j - top) of a block's `count` keys to `scores`, brings `sums` up to date; returns e^(old top - top). */
function weigh(q: usize, k: usize, row: usize, count: usize, d: usize, sums: usize, scores: usize): f32 {
  const end = scores + (count << 2);
  for (let at = scores; at < end; at += 16, k += row << 2) v128.store(at, fourDots(q, k, row, d));
  for (let at = end; at & 15; at += 4) store<f32>(at, -Infinity);
  let most = v128.load(scores);
  for (let at = scores + 16; at < end; at += 16) most = f32x4.max(most, v128.load(at));
  const old = load<f32>(sums);
  const top = max(old, max(
    max(f32x4.extract_lane(most, 0), f32x4.extract_lane(most, 1)), max(f32x4.extract_lane(most, 2), f32x4.extract_lane(most, 3))));
  for (let at = scores; at < end; at += 16) v128.store(at, exp32x4(f32x4.sub(v128.load(at), f32x4.splat(top))));
  for (let at = end; at & 15; at += 4) store<f32>(at, 0);
  let sum = f32x4.splat(0);
  for (let at = scores; at < end; at += 16) sum = f32x4.add(sum, v128.load(at));
  const rescale = old == top ? <f32>1 : f32x4.extract_lane(exp32x4(f32x4.splat(old - top)), 0);
  store<f32>(sums, top);
  store<f32>(sums, load<f32>(sums, 4) * rescale + sumOfLanes(sum), 4);
  return rescale;
}

/** q . k of four keys, each r32(r32(a0 + a1) + r32(a2 + a3)) of four lanes. */
@inline function fourDots(q: usize, k: usize, row: usize, d: usize): v128 {
  let a = f32x4.splat(0), b = a, c = a, e = a;
  for (const end = q + (d << 2); q < end; q += 16, k += 16) {
    const v = v128.load(q);
    a = f32x4.add(a, f32x4.mul(v128.load(k), v));
    b = f32x4.add(b, f32x4.mul(v128.load(k + row), v));
    c = f32x4.add(c, f32x4.mul(v128.load(k + 2 * row), v));
    e = f32x4.add(e, f32x4.mul(v128.load(k + 3 * row), v));
  }
  const ab = f32x4.add(v128.shuffle<i32>(a, b, 0, 4, 2, 6), v128.shuffle<i32>(a, b, 1, 5, 3, 7));
  const ce = f32x4.add(v128.shuffle<i32>(c, e, 0, 4, 2, 6), v128.shuffle<i32>(c, e, 1, 5, 3, 7));
  return f32x4.add(v128.shuffle<i64>(ab, ce, 0, 2), v128.shuffle<i64>(ab, ce, 1, 3));
}

/** read = read * rescale + sum_j weight_j * v_j, j ascending. */
function addValues(read: usize, rescale: f32, weights: usize, v: usize, row: usize, count: usize, bytes: usize): void {
  const factor = f32x4.splat(rescale);
  const end = weights + (count << 2);
  let i: usize = 0;
  for (; i + 64 <= bytes; i += 64) {
    const at = read + i;
    let a = f32x4.mul(v128.load(at), factor), b = f32x4.mul(v128.load(at, 16), factor);
    let c = f32x4.mul(v128.load(at, 32), factor), e = f32x4.mul(v128.load(at, 48), factor);
    for (let w = weights, from = v + i; w < end; w += 4, from += row) {
      const p = v128.load32_splat(w);
      a = f32x4.add(a, f32x4.mul(p, v128.load(from))); b = f32x4.add(b, f32x4.mul(p, v128.load(from, 16)));
      c = f32x4.add(c, f32x4.mul(p, v128.load(from, 32))); e = f32x4.add(e, f32x4.mul(p, v128.load(from, 48)));
    }
    v128.store(at, a); v128.store(at, b, 16); v128.store(at, c, 32); v128.store(at, e, 48);
  }
  for (; i < bytes; i += 16) {
    let a = f32x4.mul(v128.load(read + i), factor);
    for (let w = weights, from = v + i; w < end; w += 4, from += row) {
      a = f32x4.add(a, f32x4.mul(v128.load32_splat(w), v128.load(from)));
    }
    v128.store(read + i, a);
  }
}

/** read = read / sum * sigmoid(gate), in place; `queries` (rows, heads, q | gate). `heads` of all rows together. */
export function finishRead(read: usize, sums: usize, queries: usize, heads: i32, d: usize): void {
  const bytes = d << 2;
  for (; heads > 0; heads--, sums += 8, queries += bytes << 1) {
    const sum = v128.load32_splat(sums, 4);
    for (let i: usize = 0; i < bytes; i += 16, read += 16) {
      v128.store(read, f32x4.mul(f32x4.div(v128.load(read), sum), sigmoidx4(v128.load(queries + bytes + i))));
    }
  }
}
