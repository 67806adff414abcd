import { createHash } from "node:crypto";
import { packagePath } from "../../io/built.ts";
import { openDecodeRoom } from "./decode-room.ts";

/**
 * What `logitsDigest` gives on every machine. It pins that the bytes do not change with the machine, the Node version or by accident;
 * whether they are right, llama.cpp's answers in fixtures/reference tell.
 */
export const pinnedLogits = "4c1497bd7e533f2736b06142e2a4cd892927b3a77abb7efa310505bbee8b0d94";

/** SHA-256 of all logits of 104 fixed tokens of the shipped model, engine canonical: a prompt of 96, then eight one by one. */
export async function logitsDigest(): Promise<string> {
	const model = packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf");
	const room = await openDecodeRoom({ home: "", model, engine: "canonical" });
	const sequence = room.decoder.newSequence();
	try {
		const tokens = Array.from({ length: 104 }, (_, i) => (i * 167 + 11) % room.facts.shape.vocab);
		const hash = createHash("sha256");
		for (const chunk of [tokens.slice(0, 96), ...tokens.slice(96).map((token) => [token])]) {
			const [logits] = await room.decoder.forward([
				{ sequence, tokens: chunk, wantLogits: "all", phase: chunk.length > 1 ? "prefill" : "decode" },
			]);
			hash.update(new Uint8Array(logits!.buffer, logits!.byteOffset, logits!.byteLength));
		}
		return hash.digest("hex");
	} finally {
		sequence.release();
		await room.close();
	}
}
