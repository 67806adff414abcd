import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { bytesOfToken } from "./byte-level.ts";
import type { Metadata } from "./metadata.ts";
import { readTokenizerMetadata, type TokenizerMetadata, tokenKinds } from "./tokenizer-metadata.ts";

/** Text to token ids and back, as llama.cpp does it: no normalisation, no BOS. */
export interface Tokenizer {
	/** Ids from here on have no text: the vocabulary of the model may be padded. */
	readonly tokenCount: number;
	/** Ids that end a generation: `<|im_end|>`, `<|endoftext|>` and their like. */
	readonly endOfGeneration: ReadonlySet<number>;
	/** With `special`, control tokens written in the text (`<|im_start|>`) become their ids; without, they are plain text. */
	encode(text: string, options?: { special?: boolean }): number[];
	/** With `skipSpecial`, control tokens leave no text. Ids without text leave none either. */
	decode(ids: readonly number[], options?: { skipSpecial?: boolean }): string;
	/** Decodes id by id. */
	stream(options?: { skipSpecial?: boolean }): TextStream;
	/** The id of a token's exact text in the file, or undefined. */
	idOf(token: string): number | undefined;
}

/** Text that grows by tokens: a character whose bytes are spread over tokens comes out when it is whole. */
export interface TextStream {
	/** The text that has become whole with this token; often all of its own, sometimes none. */
	push(id: number): string;
	/** What is left; an unfinished character becomes U+FFFD. */
	end(): string;
}

/** What llama.cpp takes for the end of a generation wherever a vocabulary has it. */
const endTexts = new Set(["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>", "<|eom_id|>", "<|end_of_text|>"]);

/** The tokenizer of a model's metadata. Throws `unsupported_architecture` or `bad_gguf`. */
export function tokenizerOf(metadata: Metadata): Tokenizer {
	const parts = readTokenizerMetadata(metadata);
	const { tokens, kinds } = parts;
	const ids = new Map(tokens.map((token, id) => [token, id]));
	const encodeWords = wordEncoderOf(parts, ids);
	const literals = literalTokensOf(parts);
	const everywhere = splitterOf(literals.filter((id) => kinds[id] === tokenKinds.userDefined).map((id) => tokens[id]!));
	const withControls = splitterOf(literals.map((id) => tokens[id]!));
	const ends = [...parts.ends, ...literals.filter((id) => endTexts.has(tokens[id]!))];

	const bytesOf = (id: number, skipSpecial: boolean): Uint8Array => {
		const kind = kinds[id];
		if (kind === undefined || kind === tokenKinds.unused) return new Uint8Array();
		if (kind === tokenKinds.normal) return bytesOfToken(tokens[id]!);
		if (skipSpecial && kind !== tokenKinds.userDefined) return new Uint8Array();
		return new TextEncoder().encode(tokens[id]!);
	};

	const stream = ({ skipSpecial = false } = {}): TextStream => {
		const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
		return {
			push: (id) => decoder.decode(bytesOf(id, skipSpecial), { stream: true }),
			end: () => decoder.decode(),
		};
	};

	return {
		tokenCount: tokens.length,
		endOfGeneration: new Set(ends.filter((id) => id >= 0 && id < tokens.length)),
		encode(text, { special = false } = {}) {
			const pieces = (special ? withControls : everywhere)(text);
			return pieces.flatMap((piece) => (piece.literal ? [ids.get(piece.text)!] : encodeWords(piece.text)));
		},
		decode(tokenIds, options) {
			const growing = stream(options);
			return tokenIds.map((id) => growing.push(id)).join("") + growing.end();
		},
		stream,
		idOf: (token) => ids.get(token),
	};
}

/** Byte-level BPE of text without literal tokens. */
function wordEncoderOf(parts: TokenizerMetadata, ids: ReadonlyMap<string, number>): (text: string) => number[] {
	const words = { type: "Split", pattern: { Regex: parts.words }, behavior: "Isolated", invert: false };
	const bytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false };
	const tokenizer = new HuggingFaceTokenizer(
		{
			version: "1.0",
			added_tokens: [],
			// llama.cpp does not normalise.
			normalizer: null,
			pre_tokenizer: { type: "Sequence", pretokenizers: [words, bytes] },
			post_processor: null,
			decoder: { type: "ByteLevel" },
			model: { type: "BPE", vocab: Object.fromEntries(ids), merges: parts.merges },
		},
		{ clean_up_tokenization_spaces: false },
	);
	return (text) => tokenizer.encode(text, { add_special_tokens: false }).ids;
}

/** Tokens found in text by their exact spelling, before any BPE. */
function literalTokensOf({ tokens, kinds }: TokenizerMetadata): number[] {
	const isLiteral = (kind: number) => kind === tokenKinds.control || kind === tokenKinds.userDefined;
	return [...tokens.keys()].filter((id) => isLiteral(kinds[id]!) && tokens[id] !== "");
}

/** Cuts a text at literal tokens, the longest first where several fit. */
function splitterOf(literals: readonly string[]): (text: string) => { text: string; literal: boolean }[] {
	if (literals.length === 0) return (text) => (text === "" ? [] : [{ text, literal: false }]);
	const longestFirst = [...literals].sort((a, b) => b.length - a.length);
	const pattern = new RegExp(`(${longestFirst.map(escapeRegExp).join("|")})`, "u");
	// Splitting by a captured group puts the matches at odd places.
	return (text) =>
		text
			.split(pattern)
			.map((piece, index) => ({ text: piece, literal: index % 2 === 1 }))
			.filter((piece) => piece.text !== "");
}

function escapeRegExp(text: string): string {
	return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
