import { KvasirError } from "../../errors.ts";
import type { ModelShape } from "../../model/shape.ts";
import { attentionBytesPerToken, attentionWork } from "./attention.ts";
import { deltaNetBytes, deltaNetWork } from "./delta-net.ts";
import { TextMemory, type TextMemoryOptions } from "./text-memory.ts";

/** The memory of all texts of a model. Throws `unsupported_shape` for heads that the mixers' vectors of four do not fit. */
export function openTextMemory(
	shape: ModelShape,
	limits: Pick<TextMemoryOptions, "bytesMost" | "eachBytes"> = {},
): TextMemory {
	const { attention, deltaNet, contextLength } = shape;
	const odd = [attention.headDim, deltaNet.headDim].find((width) => width % 4 !== 0);
	if (odd !== undefined) {
		throw new KvasirError("unsupported_shape", `Cannot decode: a head's width ${odd} is no multiple of 4`);
	}
	const { rows, states } = deltaNetBytes(shape);
	return new TextMemory({
		workBytes: Math.max(attentionWork(shape).bytes, deltaNetWork(shape).bytes),
		blockBytesMost: Math.max(rows + states, contextLength * attentionBytesPerToken(shape)),
		...limits,
	});
}
