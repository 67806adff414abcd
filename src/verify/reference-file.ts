import { open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { KvasirError } from "../errors.ts";
import { readSmallFile } from "../io/files.ts";

/** Far more than the text of any recording; the logits lie in a file of their own. */
const descriptionBytes = 256 * 2 ** 20;
const logitsBytes = 16 * 2 ** 30;

const tokenIds = z.array(z.int().min(0)).min(1);

/** One recorded row of logits: after a generated step (0: after the prompt), or after a prompt position. */
const logitRow = z.union([
	z.object({ prompt: z.string(), step: z.int().min(0) }),
	z.object({ prompt: z.string(), promptPos: z.int().min(0) }),
]);

const recording = z.looseObject({
	vocab: z.int().min(1),
	prompts: z.array(z.looseObject({ id: z.string(), promptTokens: tokenIds, tokens: tokenIds })).min(1),
	logitsFile: z.string(),
	logitRows: z.array(logitRow),
});

export interface ReferencePrompt {
	readonly id: string;
	readonly promptTokens: readonly number[];
	/** Generated after the prompt. */
	readonly tokens: readonly number[];
	/** Position in prompt and generated tokens -> row of the logits file; a position recorded twice has one row here. */
	readonly rows: ReadonlyMap<number, number>;
}

/** Recorded outputs of another implementation: tokens, and rows of logits (vocab). */
export interface ReferenceFile {
	readonly vocab: number;
	readonly prompts: readonly ReferencePrompt[];
	/** One recorded row. */
	row(index: number): Promise<Float32Array>;
	close(): Promise<void>;
}

/** Opens a recording and the `.logits.f32` beside it. Throws `file_missing`, or `bad_file` saying what does not fit. */
export async function openReference(path: string): Promise<ReferenceFile> {
	const { vocab, prompts, logitsFile, logitRows } = await readDescription(path);
	const logitsPath = join(dirname(path), basename(logitsFile));
	const file = await open(logitsPath).catch((cause: unknown) => {
		throw new KvasirError("file_missing", `Cannot read the recorded logits ${logitsPath}: no such file`, { cause });
	});
	const rowBytes = vocab * 4;
	const { size } = await file.stat();
	if (size !== logitRows.length * rowBytes || size > logitsBytes) {
		await file.close();
		const state = `${size} bytes are not ${logitRows.length} rows of ${vocab} logits`;
		throw new KvasirError("bad_file", `Cannot read the recorded logits ${logitsPath}: ${state}`);
	}
	return {
		vocab,
		prompts: prompts.map((prompt) => ({ ...prompt, rows: rowsOf(prompt, logitRows) })),
		async row(index) {
			const bytes = new Uint8Array(rowBytes);
			const { bytesRead } = await file.read(bytes, 0, rowBytes, index * rowBytes);
			if (bytesRead !== rowBytes) {
				throw new KvasirError("bad_file", `Cannot read the recorded logits ${logitsPath}: row ${index} is cut`);
			}
			return new Float32Array(bytes.buffer);
		},
		close: () => file.close(),
	};
}

async function readDescription(path: string): Promise<z.infer<typeof recording>> {
	const bytes = await readSmallFile(path, descriptionBytes);
	if (bytes === null) throw new KvasirError("file_missing", `Cannot read the reference ${path}: no such file`);
	try {
		return recording.parse(JSON.parse(bytes.toString("utf8")));
	} catch (cause) {
		const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
		throw new KvasirError("bad_file", `Cannot read the reference ${path}: ${reason}`, { cause });
	}
}

/** Step n's logits are those of the position before generated token n: step 0 is the prompt's last position. */
function rowsOf(
	{ id, promptTokens, tokens }: z.infer<typeof recording>["prompts"][number],
	logitRows: z.infer<typeof recording>["logitRows"],
): Map<number, number> {
	const rows = new Map<number, number>();
	for (const [index, row] of logitRows.entries()) {
		if (row.prompt !== id) continue;
		const position = "step" in row ? promptTokens.length - 1 + row.step : row.promptPos;
		const fits = typeof position === "number" && position < promptTokens.length + tokens.length - 1;
		if (!fits) throw new KvasirError("bad_file", `Cannot read the reference: row ${index} lies beyond prompt ${id}`);
		if (!rows.has(position)) rows.set(position, index);
	}
	return rows;
}
