// Builds dist: TypeScript to ES modules, the AssemblyScript kernels to WebAssembly.
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const run = (name, args) =>
	execFileSync(process.execPath, [`${root}node_modules/${name}`, ...args], { cwd: root, stdio: "inherit" });

rmSync(`${root}dist`, { recursive: true, force: true });
run("typescript/bin/tsc", ["-p", "tsconfig.build.json"]);
chmodSync(`${root}dist/bin/kvasir.js`, 0o755);
