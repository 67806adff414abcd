import { access } from "node:fs/promises";
import { KvasirError } from "../errors.ts";
import { nearestName } from "../io/nearest-name.ts";
import { type Geometry, geometryNamed } from "./geometries.ts";
import type { Model } from "./model.ts";
import { openModel } from "./open-model.ts";
import { listModels } from "./registry.ts";
import { openSynthetic, tinyModelPath } from "./synthetic.ts";

/** What a model's name on the command line stands for. */
export type ModelReference =
	| { readonly kind: "file"; readonly name: string; readonly path: string; readonly modelId?: string }
	| { readonly kind: "synthetic"; readonly name: string; readonly geometry: Geometry };

/** The only geometry that stands in for itself when its weights are not there. */
const syntheticName = "122b";

/**
 * Finds a model: a registered name, `tiny` (shipped), `122b` (registered weights, else synthetic), or the path of a file.
 * Throws `model_missing` listing the names there are.
 */
export async function resolveModel(home: string, nameOrPath: string): Promise<ModelReference> {
	const registered = await listModels(home);
	const entry = registered.find(({ name }) => name === nameOrPath);
	if (entry !== undefined) return { kind: "file", ...entry };
	if (nameOrPath === "tiny") return { kind: "file", name: "tiny", path: tinyModelPath };
	const geometry = geometryNamed(nameOrPath);
	if (geometry !== undefined && nameOrPath === syntheticName) return { kind: "synthetic", name: nameOrPath, geometry };
	if (/[\\/]|\.gguf$/i.test(nameOrPath) || (await exists(nameOrPath))) {
		return { kind: "file", name: nameOrPath.replace(/^.*[\\/]|\.gguf$/gi, ""), path: nameOrPath };
	}
	throw unknownModel(nameOrPath, ["tiny", syntheticName, ...registered.map(({ name }) => name)], geometry);
}

/**
 * Resolves and opens a model. Throws `model_missing`, `model_mismatch` when a registered file has changed, and what
 * `openModel` throws.
 *
 * @param options.requireWeights refuse a synthetic model
 */
export async function openNamedModel(
	home: string,
	nameOrPath: string,
	{ requireWeights = false }: { requireWeights?: boolean } = {},
): Promise<Model> {
	const reference = await resolveModel(home, nameOrPath);
	if (reference.kind === "synthetic") {
		if (!requireWeights) return openSynthetic(reference.geometry);
		throw new KvasirError("model_missing", `Cannot open ${reference.name}: no weights are registered`, {
			hint: `kvasir model add ${reference.name} PATH`,
		});
	}
	const model = await openModel(reference.path, reference.name);
	const found = Buffer.from(model.modelId).toString("hex");
	if (reference.modelId === undefined || reference.modelId === found) return model;
	await model.weights.close();
	throw new KvasirError(
		"model_mismatch",
		`Cannot open ${reference.name}: the file is not the one that was registered`,
		{
			hint: `if the change is wanted: kvasir model add ${reference.name} ${reference.path}`,
			facts: { path: reference.path, registered: reference.modelId, found },
		},
	);
}

async function exists(path: string): Promise<boolean> {
	return access(path).then(
		() => true,
		() => false,
	);
}

function unknownModel(name: string, known: string[], geometry: Geometry | undefined): KvasirError {
	const names = [...new Set(known)];
	const nearest = nearestName(name, names);
	const hint =
		geometry !== undefined
			? `register its weights: kvasir model add ${name} PATH`
			: `${nearest === null ? "" : `did you mean ${nearest}? `}models: ${names.join(", ")}, or the path of a .gguf file`;
	return new KvasirError("model_missing", `Cannot find the model "${name}": no such name or file`, {
		hint,
		facts: { name, known: names },
	});
}
