// Builds dist: TypeScript to ES modules, the AssemblyScript kernels to WebAssembly. A dist in use stays whole: the new one
// replaces it when it is finished. Kernels are compiled only when their source has changed. Libraries of hundreds of small modules
// become one file each, as every process would spend a third of a second on loading them.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
	chmodSync,
	copyFileSync,
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	writeFileSync,
} from "node:fs";
import { basename, dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));
const next = `${root}.cache/dist-${process.pid}`;
const previous = `${next}-previous`;
const libraries = ["kysely", "zod"];

/** Shared memory, imported: up to 3 GiB each (numerics and layout: docs/numerics.md). */
const kernelFlags =
	"-O3 --noAssert --runtime stub --enable simd --enable threads --importMemory --noExportMemory --sharedMemory --initialMemory 1 --maximumMemory 49152".split(
		" ",
	);
const expertKernel = "src/experts/canonical/kernel";
const mixerKernel = "src/backbone/decode/mixer-kernel";

// TypeScript emits in spite of type errors: the build then fails, but what it made is there to be tried.
const built = await Promise.all([
	buildTypeScript(),
	buildKernel(expertKernel, "src/experts/canonical/kernel.wasm"),
	buildKernel(mixerKernel, "src/backbone/decode/mixer-kernel.wasm", [expertKernel]),
	bundleLibraries(),
]);
if (built.every(Boolean)) useBundles();
if (existsSync(`${root}dist`)) renameSync(`${root}dist`, previous);
renameSync(next, `${root}dist`);
rmSync(previous, { recursive: true, force: true });
if (!built.every(Boolean)) process.exitCode = 1;

function run(script, args) {
	const child = spawn(process.execPath, [`${root}node_modules/${script}`, ...args], { cwd: root, stdio: "inherit" });
	return new Promise((resolve) => child.on("close", (code) => resolve(code === 0)));
}

async function buildTypeScript() {
	mkdirSync(next, { recursive: true });
	const built = await run("typescript/bin/tsc", ["-p", "tsconfig.build.json", "--outDir", next]);
	if (existsSync(`${next}/bin/kvasir.js`)) chmodSync(`${next}/bin/kvasir.js`, 0o755);
	return built;
}

/** Compiles `folder`/kernel.ts, which may import from its own folder and `more`, to `target` in dist. */
async function buildKernel(folder, target, more = []) {
	const hash = createHash("sha256").update(kernelFlags.join());
	for (const path of [folder, ...more]) {
		for (const name of readdirSync(root + path).sort())
			hash.update(name).update(readFileSync(`${root}${path}/${name}`));
	}
	const cached = `.cache/kernel-${hash.digest("hex").slice(0, 16)}.wasm`;
	const made = `${next}-${basename(target)}`;
	if (!existsSync(root + cached)) {
		mkdirSync(`${root}.cache`, { recursive: true });
		if (!(await run("assemblyscript/bin/asc.js", [`${folder}/kernel.ts`, ...kernelFlags, "--outFile", made])))
			return false;
		renameSync(made, root + cached);
	}
	mkdirSync(dirname(`${next}/${target}`), { recursive: true });
	copyFileSync(root + cached, `${next}/${target}`);
	return true;
}

/** Each as libraries/NAME.js, its licence at the top. */
async function bundleLibraries() {
	const licenceOf = (name) => readFileSync(`${root}node_modules/${name}/LICENSE`, "utf8");
	await build({
		root,
		configFile: false,
		logLevel: "error",
		ssr: { noExternal: true },
		build: {
			ssr: true,
			outDir: `${next}/libraries`,
			rolldownOptions: {
				input: Object.fromEntries(libraries.map((name) => [name, name])),
				output: { entryFileNames: "[name].js", banner: ({ name }) => `/*! ${name}\n${licenceOf(name)}*/` },
			},
		},
	});
	return true;
}

/** Our modules import the bundles. */
function useBundles() {
	const ours = readdirSync(next, { recursive: true }).filter((path) => /^(bin|src)\/.*\.js$/.test(path));
	for (const path of ours) {
		const text = readFileSync(`${next}/${path}`, "utf8");
		const bundled = text.replace(/(?<=(?: from |\bimport\()")[^."]+(?=")/g, (name) =>
			libraries.includes(name) ? relative(dirname(path), `libraries/${name}.js`) : name,
		);
		if (bundled !== text) writeFileSync(`${next}/${path}`, bundled);
	}
}
