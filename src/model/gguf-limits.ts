/** What a GGUF header may claim; every count is checked against these, and against the bytes the file really has, before anything is allocated. */
export const ggufLimits = {
	/** A vocabulary of a million tokens with its merges needs about 50 MB. */
	headerBytes: 256 * 2 ** 20,
	/** The first read; four times as much until the header fits. */
	firstWindowBytes: 256 * 2 ** 10,
	metadataKeys: 65_536,
	keyBytes: 65_535,
	/** The longest string value; chat templates are tens of kilobytes. */
	stringBytes: 16 * 2 ** 20,
	/** Of all arrays of a file together: a million tokens with their types and merges. */
	arrayElements: 4 * 2 ** 20,
	/** No known file nests an array deeper than once. */
	arrayDepth: 4,
	tensors: 65_536,
	/** llama.cpp's GGML_MAX_NAME is 64; a little room for names of other tools. */
	tensorNameBytes: 256,
	dimensions: 4,
	alignmentBytes: 2 ** 20,
	shards: 1_024,
	/** One ranged read; node's own limit is 2^31 - 1. */
	readBytes: 2 ** 30,
} as const;
