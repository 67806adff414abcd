import { architecture } from "./metadata.ts";
import type { ModelShape } from "./shape.ts";

/** The metadata a file of this shape would have: what `shapeOf` reads back. */
export function shapeMetadata(shape: ModelShape): [string, unknown][] {
	const { attention, deltaNet } = shape;
	const keys: Record<string, unknown> = {
		block_count: shape.layers,
		embedding_length: shape.hidden,
		context_length: shape.contextLength,
		"attention.head_count": attention.heads,
		"attention.head_count_kv": attention.kvHeads,
		"attention.key_length": attention.headDim,
		"attention.value_length": attention.headDim,
		"attention.layer_norm_rms_epsilon": shape.rmsEpsilon,
		"attention.recurrent_layers": shape.fullAttention.map((full) => !full),
		"rope.dimension_count": attention.rotaryDims,
		"rope.freq_base": attention.ropeTheta,
		"ssm.conv_kernel": deltaNet.convKernel,
		"ssm.state_size": deltaNet.headDim,
		"ssm.group_count": deltaNet.keyHeads,
		"ssm.time_step_rank": deltaNet.valueHeads,
		"ssm.inner_size": deltaNet.valueHeads * deltaNet.headDim,
		expert_count: shape.experts,
		expert_used_count: shape.topK,
		expert_feed_forward_length: shape.expertWidth,
		expert_shared_feed_forward_length: shape.sharedWidth,
	};
	const own = Object.entries(keys).map(([key, value]): [string, unknown] => [`${architecture}.${key}`, value]);
	return [["general.architecture", architecture], ...own];
}
