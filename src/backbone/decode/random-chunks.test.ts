import { join } from "node:path";
import { expect, test } from "vitest";
import { runs } from "../../../test/support/long.ts";
import { oddDims, writeRandomModel } from "../../../test/support/random-model.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { temporaryHome } from "../../../test/support/temporary-home.ts";
import { openDecodeRoom } from "./decode-room.ts";
import type { Decoder } from "./decoder.ts";

/** All logits of a text, token by token and alone. */
async function alone(decoder: Decoder, tokens: readonly number[]): Promise<Buffer> {
	const sequence = decoder.newSequence();
	const rows: Buffer[] = [];
	for (const token of tokens) {
		const [logits] = await decoder.forward([{ sequence, tokens: [token], wantLogits: "last", phase: "decode" }]);
		rows.push(bytesOf(logits!));
	}
	sequence.release();
	return Buffer.concat(rows);
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Buffer {
	return Buffer.from(buffer, byteOffset, byteLength);
}

test("random models: texts cut at random and decoded together have the logits of each alone, byte for byte", async () => {
	for (let seed = 1; seed <= runs(3, 60); seed++) {
		const { uniform } = seededRandom(seed);
		const upTo = (most: number) => 1 + Math.floor(uniform() * most);
		const [kvHeads, keyHeads] = [upTo(3), upTo(3)];
		const path = join(await temporaryHome(), "random.gguf");
		const dims = {
			...oddDims,
			layers: 1 + upTo(3),
			interval: 1 + upTo(2),
			hidden: 32 * upTo(4),
			kvHeads,
			heads: kvHeads * upTo(4),
			headDim: 4 * (1 + upTo(11)),
			rotaryDims: 2 * upTo(4),
			keyHeads,
			valueHeads: keyHeads * upTo(3),
			stateDim: 4 * upTo(9),
			convKernel: 1 + upTo(3),
			experts: 4,
			topK: upTo(4),
			expertWidth: 32,
			sharedWidth: 32,
		};
		await writeRandomModel(path, dims, { matrices: "F32" }, `chunks ${seed}`);
		const room = await openDecodeRoom({ home: "", model: path, engine: "canonical" });
		const texts = Array.from({ length: 3 }, () => ({
			tokens: Array.from({ length: 30 + upTo(60) }, () => upTo(512) - 1),
			sequence: room.decoder.newSequence(),
			rows: [] as Buffer[],
		}));
		for (;;) {
			const going = texts.filter(({ tokens, sequence }) => sequence.length < tokens.length && uniform() < 0.8);
			if (texts.every(({ tokens, sequence }) => sequence.length === tokens.length)) break;
			if (going.length === 0) continue;
			const chunks = going.map(({ tokens, sequence }) => {
				const next = tokens.slice(sequence.length, sequence.length + upTo(25));
				return { sequence, tokens: next, wantLogits: "all", phase: "prefill" } as const;
			});
			const logits = await room.decoder.forward(chunks);
			for (const [i, text] of going.entries()) text.rows.push(bytesOf(logits[i]!));
		}
		for (const { tokens, rows } of texts) {
			expect(Buffer.concat(rows).equals(await alone(room.decoder, tokens)), `seed ${seed}`).toBe(true);
		}
		await room.close();
	}
});
