// `npm test`: builds when the sources are newer than dist, runs every test, ends with the line `N passed, N failed`.
// Words after `--` are handed to vitest: `npm test -- src/model`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { softwareVulkan } from "./software-vulkan.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

if (newestIn(["src", "bin", "scripts/build.mjs"]) > builtAt()) await import("./build.mjs");

const folder = mkdtempSync(join(tmpdir(), "kvasir-test-"));
const report = join(folder, "report.json");
const vitest = join(root, "node_modules/vitest/vitest.mjs");
const args = ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`, ...process.argv.slice(2)];
const run = spawnSync(process.execPath, [vitest, ...args], {
	cwd: root,
	env: { ...process.env, ...graphics() },
	stdio: ["ignore", "inherit", "inherit"],
});
const { passed, failed } = countTests(run.status ?? 1);
rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;

/** A file that could not be loaded, an unhandled error or a runner that died counts as one failure where no test says it. */
function countTests(status) {
	let passed = 0;
	let failed = 0;
	try {
		const result = JSON.parse(readFileSync(report, "utf8"));
		passed = result.numPassedTests;
		failed = result.numFailedTests;
		failed += result.testResults.filter(
			(file) => file.status === "failed" && file.assertionResults.length === 0,
		).length;
	} catch (error) {
		console.error(`No report of the tests: ${error.message}`);
	}
	return { passed, failed: failed === 0 && status !== 0 ? 1 : failed };
}

/** GPU tests run on drivers that compute on the CPU where they can be had, else on what this machine has, else they are skipped. */
function graphics() {
	const found = [];
	for (const name of ["swiftshader", "lavapipe"]) {
		try {
			found.push(softwareVulkan(name));
		} catch (error) {
			console.error(`No ${name} for GPU tests: ${error.message}`);
		}
	}
	const joined = (variable) => [...new Set(found.map((each) => each[variable]).filter(Boolean))].join(":");
	const lists = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "LD_LIBRARY_PATH"].map((variable) => [
		variable,
		joined(variable),
	]);
	return { ...found[0], ...Object.fromEntries(lists.filter(([, value]) => value !== "")) };
}

function builtAt() {
	try {
		return statSync(join(root, "dist/bin/kvasir.js")).mtimeMs;
	} catch {
		return 0;
	}
}

function newestIn(paths) {
	return Math.max(
		...paths.map((path) => {
			const full = join(root, path);
			const stats = statSync(full);
			if (!stats.isDirectory()) return stats.mtimeMs;
			return Math.max(0, newestIn(readdirSync(full).map((name) => join(path, name))));
		}),
		0,
	);
}
