import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { packagePath } from "../../io/built.ts";

/** Decodes one text in a process of its own, from dist; prints whether onnxruntime was loaded. */
const script = (engine: string) => `
	import { createRequire } from "node:module";
	const { openDecodeRoom } = await import(${JSON.stringify(packagePath("dist/src/backbone/decode/decode-room.js"))});
	const model = ${JSON.stringify(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"))};
	const room = await openDecodeRoom({ home: "", model, engine: "${engine}" });
	const { tokens } = await room.scheduler.generate({ prompt: [1, 2, 3], maxTokens: 2, sampling: { temperature: 0 } });
	await room.close();
	const loaded = Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes("onnxruntime"));
	console.log(JSON.stringify({ tokens: tokens.length, loaded }));
`;

test.each([
	["canonical", false],
	["f32", true],
])("a backbone of engine %s loads onnxruntime: %s", async (engine, loaded) => {
	const words = ["--input-type=module", "--eval", script(engine)];
	const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: packagePath(".") });
	expect(JSON.parse(stdout)).toEqual({ tokens: 2, loaded });
});
