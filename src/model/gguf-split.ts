import { KvasirError } from "../errors.ts";
import { ggufLimits } from "./gguf-limits.ts";

const splitName = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/s;

/** The paths of all parts of a model, in order, from the path and the metadata of any of them. Throws `bad_gguf` when name and metadata disagree. */
export function shardPathsOf(path: string, metadata: ReadonlyMap<string, unknown>): string[] {
	const count = metadata.get("split.count") ?? 1;
	if (count === 1 || count === 0) return [path];
	if (typeof count !== "number" || !Number.isInteger(count) || count < 0 || count > ggufLimits.shards) {
		const state = `expected "split.count" of 1 to ${ggufLimits.shards}, found ${String(count)}`;
		throw new KvasirError("bad_gguf", `Cannot read ${path}: ${state}`);
	}
	const name = splitName.exec(path);
	if (name === null || Number(name[3]) !== count) {
		throw new KvasirError(
			"bad_gguf",
			`Cannot find the parts of ${path}: it is one of ${count}, but its name does not say so`,
			{
				hint: `name the parts ...-00001-of-${pad(count)}.gguf, as llama.cpp does`,
				facts: { path, count },
			},
		);
	}
	return Array.from({ length: count }, (_, index) => `${name[1]}-${pad(index + 1)}-of-${pad(count)}.gguf`);
}

function pad(number: number): string {
	return String(number).padStart(5, "0");
}
