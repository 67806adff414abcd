import { engineNames } from "../../experts/open-engine.ts";
import { value } from "../program/options.ts";
import { byteSize, count, oneOf, text } from "../program/readers.ts";

/** What every command that opens a model asks for. */
export const modelOptions = {
	model: value("--model <name|path>", "tiny, 122b, a registered name, or the path of a GGUF file", text, "tiny"),
	engine: value("--engine <engine>", "what computes", oneOf(...engineNames), "canonical"),
	threads: value("--threads <n>", "threads that compute", count(1, 256), 1),
	memory: value("--memory <size>", "most bytes of experts kept loaded", byteSize),
};
