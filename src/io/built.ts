import { fileURLToPath } from "node:url";

// Worker threads, child processes and WASM always run what was built. Code running from its TypeScript source (tests) is
// mapped to the same place in dist; code running from dist finds its neighbour.

const sourceRoot = new URL("../../", import.meta.url);

/** The root folder of this package, with a slash at the end. */
const packageRoot: URL = sourceRoot.pathname.endsWith("/dist/") ? new URL("../", sourceRoot) : sourceRoot;

/**
 * The URL of the built file beside a module.
 *
 * @param moduleUrl `import.meta.url` of the caller
 * @param name such as `./engine-thread.js` or `./kernel.wasm`
 */
export function builtUrl(moduleUrl: string, name: string): URL {
	const url = new URL(name, moduleUrl);
	const inside = url.href.slice(packageRoot.href.length);
	return inside.startsWith("dist/") ? url : new URL(`dist/${inside}`, packageRoot);
}

/** The path of a file shipped with the package, such as `fixtures/tiny/model.gguf`. */
export function packagePath(relative: string): string {
	return fileURLToPath(new URL(relative, packageRoot));
}
