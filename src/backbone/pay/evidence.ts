import { z } from "zod";
import { KvasirError } from "../../errors.ts";
import type { Asked } from "./compare-answer.ts";

/** A failed audit, complete enough to be replayed anywhere: what was asked, what came back, what should have. */
export interface Evidence {
	readonly model: { readonly name: string /** Hex. */; readonly modelId: string; readonly hidden: number };
	/** Base58. */
	readonly worker: string;
	readonly engineClass: string;
	/** The class of the backbone's own recomputation. */
	readonly auditedBy: string;
	/** Hex. */
	readonly session: string;
	readonly id: number;
	readonly atMs: number;
	readonly asked: Asked;
	/** f32, as it came. */
	readonly answer: Uint8Array;
	/** f32, as it was recomputed. */
	readonly expected: Uint8Array;
}

/** Rows and vectors of the largest dispatch, in base64, with room. */
export const evidenceBytesMax = 64 * 1024 * 1024;

const hex = z.string().regex(/^[0-9a-f]*$/);
const bytes = z.base64().transform((text) => new Uint8Array(Buffer.from(text, "base64")));
const indices = z.array(z.int().min(0).max(65_535)).max(32_768);

const schema = z.strictObject({
	version: z.literal(1),
	model: z.strictObject({ name: z.string(), modelId: hex, hidden: z.int().min(1).max(65_536) }),
	worker: z.string(),
	engineClass: z.string(),
	auditedBy: z.string(),
	session: hex,
	id: z.int().min(0),
	atMs: z.number(),
	asked: z.strictObject({
		layer: z.int().min(0),
		mode: z.union([z.literal(0), z.literal(1)]),
		dtype: z.enum(["f32", "f16", "q14"]),
		rowCount: z.int().min(1).max(4096),
		rowIndex: indices,
		expert: indices,
		weight: z.array(z.number()).max(32_768),
		rows: bytes,
	}),
	answer: bytes,
	expected: bytes,
});

/** Evidence as JSON text, bytes in base64. */
export function evidenceText(evidence: Evidence): string {
	const base64 = (value: Uint8Array) => Buffer.from(value).toString("base64");
	const { asked, answer, expected, ...facts } = evidence;
	return JSON.stringify({
		version: 1,
		...facts,
		asked: {
			...asked,
			rowIndex: [...asked.rowIndex],
			expert: [...asked.expert],
			weight: [...asked.weight],
			rows: base64(asked.rows),
		},
		answer: base64(answer),
		expected: base64(expected),
	});
}

/** Reads evidence from anyone, strictly. Throws `bad_file`. */
export function parseEvidence(text: string): Evidence {
	try {
		const { version: _, asked, ...facts } = schema.parse(JSON.parse(text));
		const pairs = asked.expert.length;
		if (asked.rowIndex.length !== pairs || asked.rowIndex.some((row) => row >= asked.rowCount)) {
			throw new Error("rows and experts do not belong together");
		}
		return {
			...facts,
			asked: {
				...asked,
				rowIndex: Uint16Array.from(asked.rowIndex),
				expert: Uint16Array.from(asked.expert),
				weight: Float32Array.from(asked.weight),
			},
		};
	} catch (cause) {
		const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : (cause as Error).message;
		throw new KvasirError("bad_file", `Cannot read the evidence: ${reason}`, { cause });
	}
}
