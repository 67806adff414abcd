import { readFileSync } from "node:fs";
import { KvasirError } from "../errors.ts";

/**
 * Compiles a kernel that the build made.
 *
 * @param failed `Cannot <action>: <state>` of the `engine_failed` that is thrown when it was not built, or is not understood here
 */
export function compileBuiltKernel(url: URL, failed: string): WebAssembly.Module {
	try {
		return new WebAssembly.Module(readFileSync(url));
	} catch (cause) {
		throw new KvasirError("engine_failed", failed, {
			hint: "run npm run build; WebAssembly SIMD is needed (any x64 with SSE4.1, any arm64)",
			cause,
		});
	}
}

/** A kernel over a memory: what it exports. @param aborted `Cannot <action>: <state>` of the `internal` that an abort inside throws */
export function instantiateBuiltKernel<Exports>(
	module: WebAssembly.Module,
	memory: WebAssembly.Memory,
	aborted: string,
): Exports {
	const abort = () => {
		throw new KvasirError("internal", aborted);
	};
	return new WebAssembly.Instance(module, { env: { memory, abort } }).exports as unknown as Exports;
}
