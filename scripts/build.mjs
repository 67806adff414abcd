// Builds dist: TypeScript to ES modules, the AssemblyScript kernels to WebAssembly. A dist in use stays whole: the new one
// replaces it when it is finished. Kernels are compiled only when their source has changed.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const next = `${root}.cache/dist-${process.pid}`;
const previous = `${next}-previous`;

// TypeScript emits in spite of type errors: the build then fails, but what it made is there to be tried.
const built = await Promise.all([buildTypeScript(), buildKernel()]);
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

/** Shared memory, imported: up to 3 GiB each (numerics and layout: docs/numerics.md). */
async function buildKernel() {
	const source = "src/experts/canonical/kernel/";
	const flags =
		"-O3 --noAssert --runtime stub --enable simd --enable threads --importMemory --noExportMemory --sharedMemory --initialMemory 1 --maximumMemory 49152".split(
			" ",
		);
	const hash = createHash("sha256").update(flags.join());
	for (const name of readdirSync(root + source).sort()) hash.update(name).update(readFileSync(root + source + name));
	const cached = `.cache/kernel-${hash.digest("hex").slice(0, 16)}.wasm`;
	const made = `${next}.wasm`;
	if (!existsSync(root + cached)) {
		mkdirSync(`${root}.cache`, { recursive: true });
		if (!(await run("assemblyscript/bin/asc.js", [`${source}kernel.ts`, ...flags, "--outFile", made]))) return false;
		renameSync(made, root + cached);
	}
	mkdirSync(`${next}/src/experts/canonical`, { recursive: true });
	copyFileSync(root + cached, `${next}/src/experts/canonical/kernel.wasm`);
	return true;
}
