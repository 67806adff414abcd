import { manifestOfFile } from "../../backbone/slices/manifest-cache.ts";
import { KvasirError } from "../../errors.ts";
import { isFileModel } from "../../model/open-model.ts";
import { openNamedModel } from "../../model/resolve-model.ts";
import { type Manifest, manifestDigest, parseManifest } from "../../protocol/manifest.ts";
import { modelFactsOf } from "./model-facts.ts";

/** A model's manifest, from the home where it is kept, else by reading every expert. Throws `model_missing` for synthetic weights. */
export async function readManifest(
	home: string,
	nameOrPath: string,
	options: { signal: AbortSignal; onProgress: (done: number, total: number) => void },
): Promise<{ digest: string; manifest: Manifest }> {
	const model = await openNamedModel(home, nameOrPath);
	try {
		if (!isFileModel(model)) {
			throw new KvasirError("model_missing", `Cannot list the slices of ${model.name}: its weights are synthetic`, {
				hint: `kvasir model add ${model.name} PATH`,
			});
		}
		const text = await manifestOfFile({ ...model, name: modelFactsOf(model).name }, home, options);
		return { digest: Buffer.from(manifestDigest(text)).toString("hex"), manifest: parseManifest(text) };
	} finally {
		await model.weights.close();
	}
}
