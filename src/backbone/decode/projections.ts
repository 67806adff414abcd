import type { MatrixEngine, MatrixGroup } from "../../experts/matrices.ts";
import type { Model } from "../../model/model.ts";

/** The matrices around a layer's mixer. */
export interface Projections {
	/** Of the normed rows, all sequences together. */
	readonly input: MatrixGroup;
	/** Back to the hidden width. */
	readonly output: MatrixGroup;
	close(): Promise<void>;
}

/** Loads the projections of a layer by their tensors' names (qwen35moe.md sections 3 and 4). */
export async function loadProjections(
	{ weights }: Model,
	layer: number,
	matrices: MatrixEngine,
	{ into, out }: { readonly into: readonly string[]; readonly out: string },
): Promise<Projections> {
	const matrix = (tensor: string) => weights.matrix(`blk.${layer}.${tensor}.weight`);
	const input = await matrices.group(`blk.${layer}.mixer_in`, await Promise.all(into.map(matrix)));
	const output = await matrices.group(`blk.${layer}.mixer_out`, [await matrix(out)]);
	return {
		input,
		output,
		async close() {
			await input.close();
			await output.close();
		},
	};
}
