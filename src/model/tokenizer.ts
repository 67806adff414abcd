import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { KvasirError } from "../errors.ts";
import { bytesOfToken } from "./byte-level.ts";
import type { Metadata } from "./metadata.ts";
import { readTokenizerMetadata, type TokenizerMetadata, tokenKinds } from "./tokenizer-metadata.ts";

/** Text to token ids and back, as llama.cpp does it: no normalisation, no BOS. */
export interface Tokenizer {
	/** Ids from here on have no text: the vocabulary of the model may be padded. */
	readonly tokenCount: number;
	/** Ids that end a generation: `<|im_end|>`, `<|endoftext|>` and their like. */
	readonly endOfGeneration: ReadonlySet<number>;
	/**
	 * With `special`, control tokens written in the text (`<|im_start|>`) become their ids; without, they are plain text.
	 * With `most`, it ends soon after more tokens than that are there. Throws `bounds` for a word of more than 131072 UTF-16 units.
	 */
	encode(text: string, options?: EncodeOptions): number[];
	/** What `encode` gives, some milliseconds' work at a time: for a thread that has something else to do in between. */
	encodeInParts(text: string, options?: EncodeOptions): Iterable<readonly number[]>;
	/** With `skipSpecial`, control tokens leave no text. Ids without text leave none either. */
	decode(ids: readonly number[], options?: { skipSpecial?: boolean }): string;
	/** Decodes id by id. */
	stream(options?: { skipSpecial?: boolean }): TextStream;
	/** The id of a token's exact text in the file, or undefined. */
	idOf(token: string): number | undefined;
}

export interface EncodeOptions {
	readonly special?: boolean;
	readonly most?: number;
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

/**
 * The tokenizer of a model's metadata. Throws `unsupported_architecture` or `bad_gguf`.
 *
 * @param partUnits text that is encoded at once, in UTF-16 units, at least 2, where its words allow that
 */
export function tokenizerOf(metadata: Metadata, { partUnits = 4096 } = {}): Tokenizer {
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

	function* encodeInParts(text: string, { special = false, most = Number.POSITIVE_INFINITY }: EncodeOptions = {}) {
		let encoded = 0;
		for (const piece of (special ? withControls : everywhere)(text)) {
			for (const part of piece.literal ? [piece.text] : partsOf(piece.text, partUnits)) {
				if (encoded > most) return;
				const tokens = piece.literal ? [ids.get(part)!] : encodeWords(part);
				encoded += tokens.length;
				yield tokens;
			}
		}
	}

	return {
		tokenCount: tokens.length,
		endOfGeneration: new Set(ends.filter((id) => id >= 0 && id < tokens.length)),
		encode(text, options) {
			const encoded: number[] = [];
			for (const part of encodeInParts(text, options)) for (const id of part) encoded.push(id);
			return encoded;
		},
		encodeInParts,
		decode(tokenIds, options) {
			const growing = stream(options);
			return tokenIds.map((id) => growing.push(id)).join("") + growing.end();
		},
		stream,
		idOf: (token) => ids.get(token),
	};
}

/** A longer word would occupy the thread for seconds. */
const wordUnitsMost = 131_072;
/** Where no word pattern (tokenizer-metadata.ts) has a word that goes on: behind a line break, between digits, behind a word of letters. */
const wordEnd = /(?<=\n)(?=[^\r\n])|(?<=\p{N})(?=\p{N})|(?<=[\p{L}\p{N}])(?=[^\p{L}\p{M}\p{N}])/gu;

/** Cuts a text between words, where a part is long enough. Throws `bounds`. */
function* partsOf(text: string, partUnits: number): Generator<string> {
	for (let start = 0; start < text.length; ) {
		wordEnd.lastIndex = start + partUnits;
		const end = wordEnd.exec(text)?.index ?? text.length;
		if (end - start > partUnits + wordUnitsMost) {
			throw new KvasirError(
				"bounds",
				`Cannot encode the text: a word of it has more than ${wordUnitsMost} characters`,
				{
					hint: "Break it by spaces or lines",
				},
			);
		}
		yield text.slice(start, end);
		start = end;
	}
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
