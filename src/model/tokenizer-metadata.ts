import { KvasirError } from "../errors.ts";
import { type Metadata, textOf } from "./metadata.ts";

/** What a token is (llama.cpp's llama_token_type, as `tokenizer.ggml.token_type` says it). */
export const tokenKinds = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/** The parts of GGUF metadata a byte-level BPE tokenizer is made of, checked. */
export interface TokenizerMetadata {
	/** By id; fewer than the model's vocabulary where that is padded. */
	readonly tokens: readonly string[];
	/** By id, one of `tokenKinds`. */
	readonly kinds: readonly number[];
	/** "left right", most frequent first. */
	readonly merges: readonly string[];
	/** The regular expression that cuts text into words. */
	readonly words: string;
	/** Ids that metadata names as ends of a generation. */
	readonly ends: readonly number[];
}

/** The word patterns of llama.cpp's `tokenizer.ggml.pre` (spec: qwen35moe.md section 6); digits are single words. */
const wordPatterns: ReadonlyMap<string, string> = new Map([
	["qwen35", wordPattern("\\p{L}\\p{M}")],
	["qwen2", wordPattern("\\p{L}")],
]);

/** @param letters the character classes that make up a word */
function wordPattern(letters: string): string {
	return `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[${letters}]+|\\p{N}| ?[^\\s${letters}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
}

/** Reads `tokenizer.ggml.*`. Throws `unsupported_architecture` for other tokenizers, `bad_gguf` for lists that do not fit together. */
export function readTokenizerMetadata(metadata: Metadata): TokenizerMetadata {
	const model = textOf(metadata, "tokenizer.ggml.model");
	const pre = textOf(metadata, "tokenizer.ggml.pre");
	const words = model === "gpt2" ? wordPatterns.get(pre ?? "") : undefined;
	if (words === undefined) {
		const found = `"${model ?? "not stated"}" with pre-tokenizer "${pre ?? "not stated"}"`;
		throw new KvasirError("unsupported_architecture", `Cannot use the tokenizer: it is ${found}`, {
			hint: `Kvasir reads the gpt2 tokenizer with ${[...wordPatterns.keys()].join(" or ")}`,
		});
	}
	const tokens = listOf(metadata, "tokenizer.ggml.tokens", "string");
	if (tokens.length === 0) throw bad("tokenizer.ggml.tokens", "at least one token");
	const kinds = metadata.has("tokenizer.ggml.token_type")
		? listOf(metadata, "tokenizer.ggml.token_type", "number")
		: tokens.map(() => tokenKinds.normal);
	if (kinds.length !== tokens.length) throw bad("tokenizer.ggml.token_type", `${tokens.length} kinds, one a token`);
	const merges = listOf(metadata, "tokenizer.ggml.merges", "string");
	if (!merges.every((merge) => merge.split(" ").length === 2)) {
		throw bad("tokenizer.ggml.merges", "pairs of tokens with one space between");
	}
	const ends = ["eos", "eot", "eom"].flatMap((name) => {
		const id = metadata.get(`tokenizer.ggml.${name}_token_id`);
		return typeof id === "number" ? [id] : [];
	});
	return { tokens, kinds, merges, words, ends };
}

function listOf(metadata: Metadata, key: string, type: "string"): string[];
function listOf(metadata: Metadata, key: string, type: "number"): number[];
function listOf(metadata: Metadata, key: string, type: "string" | "number"): unknown[] {
	const value = metadata.get(key);
	if (Array.isArray(value) && value.every((item) => typeof item === type)) return value;
	throw bad(key, `a list of ${type}s`);
}

function bad(key: string, wanted: string): KvasirError {
	return new KvasirError("bad_gguf", `Cannot use the tokenizer: "${key}" must hold ${wanted}`, { facts: { key } });
}
