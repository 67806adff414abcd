import { stat } from "node:fs/promises";
import { join } from "node:path";
import { sha256 } from "../../io/crypto.ts";
import { readSmallFile, writePrivateFile } from "../../io/files.ts";
import type { FileModel } from "../../model/open-model.ts";
import { manifestBytesMax, manifestText, parseManifest } from "../../protocol/manifest.ts";
import { buildManifest } from "./manifest.ts";

/**
 * The text of a model's manifest: from the home where path, size and time of every part are those it was made of, else made now,
 * which reads all experts, and kept. Throws what `buildManifest` throws.
 */
export async function manifestOfFile(
	model: FileModel,
	home: string,
	options: { signal?: AbortSignal; onProgress?: (done: number, total: number) => void } = {},
): Promise<string> {
	const path = join(home, "manifests", `${await fingerprint(model)}.json`);
	const kept = await readSmallFile(path, manifestBytesMax).catch(() => null);
	const text = kept?.toString("utf8");
	if (text !== undefined && isManifestOf(text, model)) return text;
	const made = manifestText(await buildManifest(model, options));
	await writePrivateFile(path, made);
	return made;
}

async function fingerprint({ name, gguf }: FileModel): Promise<string> {
	const parts = await Promise.all(
		gguf.shards.map(async ({ path }) => {
			const { size, mtimeMs } = await stat(path);
			return [path, size, mtimeMs];
		}),
	);
	return Buffer.from(sha256(Buffer.from(JSON.stringify([name, parts])))).toString("hex");
}

/** A damaged file is made again. */
function isManifestOf(text: string, { modelId }: FileModel): boolean {
	try {
		return parseManifest(text).modelId === Buffer.from(modelId).toString("hex");
	} catch {
		return false;
	}
}
