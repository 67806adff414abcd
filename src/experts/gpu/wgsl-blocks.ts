/** The weight types whose rows are cut into activation blocks. */
export type BlockType = "Q4_K" | "Q5_K" | "Q6_K" | "Q8_0";

/**
 * What differs between the block types in the shader of wgsl-dot.ts. Thread j of an output has columns 4j..4j+3 of each of the eight
 * 32-weight sub-blocks of super-block b (of Q8_0: block j of eight), so that neighbours read neighbouring words.
 */
export interface BlockShader {
	/** 32-bit words of a block on the device: the file's block, padded to a whole word; Q8_0's scale takes one of its own. */
	readonly words: number;
	readonly fileBytes: number;
	/** Weights of a block. */
	readonly span: 32 | 256;
	/** Type of a thread's share of a unit. */
	readonly share: "vec2<i32>" | "vec4<i32>" | "u32";
	/** Unpacks this thread's weights of super-block b: `w0`..`w7`, four bytes each, and their scales. */
	readonly read: string;
	/** `shares[at]`: exact integers of the row whose activation block is number x. */
	readonly integers: string;
	/** numerics.md's float steps of one unit, up to `s * t`. */
	readonly term: string;
	readonly add: string;
	/** The shares are float terms already, eight a unit, added one by one. */
	readonly termsInShares?: true;
}

const subBlocks = [0, 1, 2, 3, 4, 5, 6, 7] as const;
const nibblesOf = (word: number) =>
	[0, 1, 2, 3].map((i) => `let q${i} = weights[at + ${word + i * 8}u + j];`).join("\n      ");
const nibble = (s: number) => `((q${s >> 1} >> ${(s & 1) * 4}u) & 0x0f0f0f0fu)`;
const dot = (s: number) => `dot4(w${s}, packed[x * 64u + ${s * 8}u + j])`;
const weightsAre = (expression: (s: number) => string) =>
	subBlocks.map((s) => `let w${s} = ${expression(s)};`).join("\n      ");

/** Eight scales and eight minima of 6 bits each in 12 bytes: four to a word, and this thread's minimum. */
const sixBitScales = /* wgsl */ `
      let a = weights[at + 1u];
      let c = weights[at + 2u];
      let e = weights[at + 3u];
      let low_scales = a & 0x3f3f3f3fu;
      let high_scales = (e & 0x0f0f0f0fu) | ((a >> 2u) & 0x30303030u);
      let high_minima = ((e >> 4u) & 0x0f0f0f0fu) | ((c >> 2u) & 0x30303030u);
      let minimum = i32((select(c & 0x3f3f3f3fu, high_minima, j > 3u) >> ((j & 3u) * 8u)) & 255u);`;
const sixBitScale = (s: number) => `i32((${s < 4 ? "low_scales" : "high_scales"} >> ${(s & 3) * 8}u) & 255u)`;
const scaledDots = (numbers: readonly number[]) => numbers.map((s) => `${sixBitScale(s)} * ${dot(s)}`).join(" + ");
const scaledMinimum = "minimum * (sums[x * 16u + j * 2u] + sums[x * 16u + j * 2u + 1u])";

const total = (type: string) => /* wgsl */ `
      var total = ${type}();
      for (var k = 0u; k < 8u; k = k + 1u) { total = total + shares[at + k]; }`;
const addTerm = "acc = f_add(acc, terms[at]);";
const blockAt = (words: number) => `let at = read_word + b * ${words}u;`;

/** Scale j of Q6_K's sixteen signed bytes: sub-block s has two, for its columns 0..15 and 16..31. */
const signedScale = (s: number) => `extractBits(i32(scales${s >> 1}), ${(s & 1) * 16}u + (j >> 2u) * 8u, 8u)`;
const quarter = (k: number) => `${signedScale(2 * k)} * ${dot(2 * k)} + ${signedScale(2 * k + 1)} * ${dot(2 * k + 1)}`;

export const blockShaders: Readonly<Record<BlockType, BlockShader>> = {
	Q4_K: {
		words: 36,
		fileBytes: 144,
		span: 256,
		share: "vec2<i32>",
		read: `${blockAt(36)}${sixBitScales}
      ${nibblesOf(4)}
      ${weightsAre(nibble)}`,
		integers: `shares[at] = vec2<i32>(${scaledDots(subBlocks)}, ${scaledMinimum});`,
		term: `${total("vec2<i32>")}
      let both = weights[own_word + b * 36u];
      let t = f_sub(f_mul(widen_half(both & 0xffffu), f_from_int(total.x)), f_mul(widen_half(both >> 16u), f_from_int(total.y)));
      terms[lane] = f_mul(s, t);`,
		add: addTerm,
	},
	Q5_K: {
		words: 44,
		fileBytes: 176,
		span: 256,
		share: "vec4<i32>",
		read: `${blockAt(44)}${sixBitScales}
      let fifth = weights[at + 4u + j];
      ${nibblesOf(12)}
      ${weightsAre((s) => `${nibble(s)} | (((fifth >> ${s}u) & 0x01010101u) << 4u)`)}`,
		integers: `shares[at] = vec4<i32>(${scaledDots([0, 1, 2, 3])}, ${scaledDots([4, 5, 6, 7])}, ${scaledMinimum}, 0);`,
		term: `${total("vec4<i32>")}
      let both = weights[own_word + b * 44u];
      let d = widen_half(both & 0xffffu);
      let u = f_add(f_mul(d, f_from_int(total.x)), f_mul(d, f_from_int(total.y)));
      terms[lane] = f_mul(s, f_sub(u, f_mul(widen_half(both >> 16u), f_from_int(total.z))));`,
		add: addTerm,
	},
	Q6_K: {
		words: 53,
		fileBytes: 210,
		span: 256,
		share: "vec4<i32>",
		// Sub-block s = 4h + c: low nibbles of word 16h + 8(c mod 2) + j, two high bits of word 32 + 8h + j. Bytes of w - 32, signed:
		// the sixth bit flipped, and copied into the two above it.
		read: `${blockAt(53)}
      ${nibblesOf(0)}
      let top0 = weights[at + 32u + j];
      let top1 = weights[at + 40u + j];
      ${[0, 1, 2, 3].map((i) => `let scales${i} = weights[at + ${48 + i}u];`).join("\n      ")}
      ${subBlocks
				.map((s) => {
					const [h, c] = [s >> 2, s & 3];
					const low = `((q${h * 2 + (c & 1)} >> ${(c >> 1) * 4}u) & 0x0f0f0f0fu)`;
					const high = `(((top${h} >> ${c * 2}u) & 0x03030303u) << 4u)`;
					return `let f${s} = (${low} | ${high}) ^ 0x20202020u;
      let w${s} = f${s} | ((f${s} & 0x20202020u) << 1u) | ((f${s} & 0x20202020u) << 2u);`;
				})
				.join("\n      ")}`,
		integers: `shares[at] = vec4<i32>(${[0, 1, 2, 3].map(quarter).join(", ")});`,
		term: `${total("vec4<i32>")}
      let d = widen_half(weights[own_word + b * 53u + 52u] & 0xffffu);
      var u = f_mul(d, f_from_int(total.x));
      u = f_add(u, f_mul(d, f_from_int(total.y)));
      u = f_add(u, f_mul(d, f_from_int(total.z)));
      u = f_add(u, f_mul(d, f_from_int(total.w)));
      terms[lane] = f_mul(s, u);`,
		add: addTerm,
	},
	Q8_0: {
		words: 9,
		fileBytes: 34,
		span: 32,
		share: "u32",
		read: `let inside = b * 8u + j < shape.blocks;
      let word = read_word + select(0u, (b * 8u + j) * 9u, inside);
      let d = select(0u, widen_half(weights[word] & 0xffffu), inside);
      ${subBlocks.map((i) => `let w${i} = weights[word + ${i + 1}u];`).join("\n      ")}`,
		integers: `let dots = ${subBlocks.map((i) => `dot4(w${i}, packed[x * 64u + j * 8u + ${i}u])`).join(" + ")};
        shares[at] = f_mul(f_mul(d, scales[x]), f_from_int(dots));`,
		term: "",
		add: "for (var k = 0u; k < 8u; k = k + 1u) { acc = f_add(acc, shares[at + k]); }",
		termsInShares: true,
	},
};
