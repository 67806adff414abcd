import { isAbsolute, join, resolve } from "node:path";
import { z } from "zod";
import { KvasirError } from "../errors.ts";
import { packagePath } from "../io/built.ts";
import { readSmallFile, writePrivateFile } from "../io/files.ts";

/** A model that can be named with `--model`. */
export interface RegisteredModel {
	readonly name: string;
	readonly path: string;
	/** Comes with the package. */
	readonly shipped: boolean;
}

const tiny: RegisteredModel = {
	name: "tiny",
	path: packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"),
	shipped: true,
};
const registryBytesMax = 2 ** 20;
const registry = z.strictObject({ models: z.record(z.string(), z.string()) });

/** The models of a home and those of the package, by name. Throws `bad_file`. */
export async function listModels(home: string): Promise<RegisteredModel[]> {
	const registered = Object.entries(await readRegistry(home));
	return [tiny, ...registered.map(([name, path]) => ({ name, path, shipped: false }))];
}

/** Registers a path under a name, in place of an older one. Throws `usage` for a name that could be a path or is the package's. */
export async function registerModel(home: string, name: string, path: string): Promise<void> {
	if (!/^[a-z0-9][a-z0-9._-]{0,63}$/i.test(name) || name.endsWith(".gguf") || name === tiny.name) {
		throw new KvasirError("usage", `Cannot register a model as "${name}": not a free name`, {
			hint: "Use letters, digits, dots and dashes; not tiny, and not ending in .gguf",
		});
	}
	const models = { ...(await readRegistry(home)), [name]: resolve(path) };
	await writePrivateFile(registryPath(home), `${JSON.stringify({ models }, null, "\t")}\n`);
}

/** What `--model` stands for: a registered name, else a path. Throws `model_missing` for a word that is neither. */
export async function findModel(home: string, nameOrPath: string): Promise<{ name?: string; path: string }> {
	const models = await listModels(home);
	const found = models.find(({ name }) => name === nameOrPath);
	if (found) return { name: found.name, path: found.path };
	const looksLikePath = isAbsolute(nameOrPath) || /[\\/]|\.gguf$/.test(nameOrPath);
	if (looksLikePath) return { path: resolve(nameOrPath) };
	throw new KvasirError("model_missing", `Cannot find the model "${nameOrPath}": not registered`, {
		hint: `kvasir model add ${nameOrPath} PATH.gguf registers one; known: ${models.map(({ name }) => name).join(", ")}`,
	});
}

const registryPath = (home: string) => join(home, "models.json");

async function readRegistry(home: string): Promise<Record<string, string>> {
	const bytes = await readSmallFile(registryPath(home), registryBytesMax);
	if (bytes === null) return {};
	try {
		return registry.parse(JSON.parse(bytes.toString("utf8"))).models;
	} catch (cause) {
		throw new KvasirError("bad_file", `Cannot read ${registryPath(home)}: not a list of models`, {
			cause,
			hint: "Delete it and register the models again with kvasir model add",
		});
	}
}
