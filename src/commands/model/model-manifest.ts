import { formatBytes } from "../../io/format-amounts.ts";
import type { Manifest } from "../../protocol/manifest.ts";
import { formatFacts, formatTable } from "../../ui/table.ts";
import { defineCommand, type Outcome } from "../program/command.ts";

interface ManifestReport {
	/** SHA-256 of the manifest's text: what a backbone's `assign` names. */
	readonly digest: string;
	readonly manifest: Manifest;
}

export const modelManifestCommand = defineCommand({
	path: "model manifest",
	section: "model",
	summary: "the SHA-256 of every expert's slice, as workers check them",
	operands: [{ name: "<model>", about: "tiny, a registered name, or the path of a GGUF file" }],
	options: {},
	example: "kvasir model manifest tiny --json",
	async run({ home, progress, signal }, _options, [nameOrPath]): Promise<Outcome<ManifestReport>> {
		const { readManifest } = await import("./read-manifest.ts");
		const data = await progress("hashing experts", (say) =>
			readManifest(home, nameOrPath!, {
				signal,
				onProgress: (done, total) => say(`hashing experts: ${done} of ${total}`),
			}),
		);
		return { data };
	},
	render({ digest, manifest }) {
		const facts = formatFacts([
			["model", manifest.name],
			["model id", manifest.modelId],
			["manifest", digest],
			["slices", `${manifest.layers.length} layers of ${manifest.experts}`],
		]);
		const rows = manifest.layers.map(({ types, bytes, slices }, layer) => [
			layer,
			types.join(" "),
			formatBytes(bytes.reduce((sum, part) => sum + part, 0)),
			`${slices[0]!.slice(0, 16)}...`,
		]);
		return `${facts}\n\n${formatTable(["layer", "gate up down", "a slice", "expert 0"], rows)}`;
	},
});
