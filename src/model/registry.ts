import { join, resolve } from "node:path";
import { z } from "zod";
import { KvasirError } from "../errors.ts";
import { readSmallFile, writePrivateFile } from "../io/files.ts";
import { openModel } from "./open-model.ts";

/** A model file known by a name. */
export interface RegisteredModel {
	readonly name: string;
	/** Absolute; of any part where the model is split. */
	readonly path: string;
	/** Hexadecimal SHA-256 of its headers when it was added. */
	readonly modelId: string;
}

/** Letters, digits, dots, dashes: nothing that could be a path. */
const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/i;

const registryFile = z.strictObject({
	version: z.literal(1),
	models: z.array(
		z.strictObject({
			name: z.string().regex(namePattern),
			path: z.string().min(1),
			modelId: z.string().regex(/^[0-9a-f]{64}$/),
		}),
	),
});

/** Far more than any list of models. */
const registryBytes = 2 ** 20;

/** The models registered in a home, by name. Throws `bad_file` for a damaged list. */
export async function listModels(home: string): Promise<RegisteredModel[]> {
	const path = registryPath(home);
	const bytes = await readSmallFile(path, registryBytes);
	if (bytes === null) return [];
	try {
		return registryFile.parse(JSON.parse(bytes.toString("utf8"))).models;
	} catch (cause) {
		const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
		throw new KvasirError("bad_file", `Cannot read ${path}: ${reason}`, {
			cause,
			hint: "correct the file, or delete it and add the models again",
		});
	}
}

/** Registers a model file under a name, replacing an older one; opens it first. Throws `usage` for a bad name, or what `openModel` throws. */
export async function addModel(home: string, name: string, path: string): Promise<RegisteredModel> {
	if (!namePattern.test(name) || name.endsWith(".gguf") || name === "tiny") {
		const state = name === "tiny" ? "it is the shipped model's name" : "use letters, digits, dots and dashes";
		throw new KvasirError("usage", `Cannot name a model "${name}": ${state}`, {
			hint: "choose another name: kvasir model add NAME PATH",
		});
	}
	const absolute = resolve(path);
	const model = await openModel(absolute, name);
	await model.weights.close();
	const entry = { name, path: absolute, modelId: Buffer.from(model.modelId).toString("hex") };
	const others = (await listModels(home)).filter((other) => other.name !== name);
	const models = [...others, entry].sort((a, b) => (a.name < b.name ? -1 : 1));
	await writePrivateFile(registryPath(home), `${JSON.stringify({ version: 1, models }, null, "\t")}\n`);
	return entry;
}

function registryPath(home: string): string {
	return join(home, "models.json");
}
