// Compares the digests of the canonical-1 kernels and of a backbone's logits over Node versions, with AVX off, and on arm64 (under qemu where this machine is
// x64): prints a table, exit code 1 when one differs. What cannot run here is listed as skipped, with the reason.
// Other Nodes come from npm into .cache/nodes; qemu comes from Debian, installed when this runs as root.
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const script = `${root}scripts/self-check.mjs`;
const cache = `${root}.cache/nodes/`;
const run = promisify(execFile);

const here = { name: `node ${process.version} ${process.arch}`, command: [process.execPath] };
const linux = process.platform === "linux";
const cases = [
	() => here,
	...(process.arch === "x64"
		? [
				() => ({
					name: `${here.name}, without AVX`,
					command: [process.execPath, "--no-enable-avx", "--no-enable-avx2"],
				}),
			]
		: []),
	() => otherNode(22, process.arch),
	() => otherNode(24, process.arch),
	...(process.arch === "x64" ? [() => arm64UnderQemu(22)] : []),
];

const rows = [];
for (const prepare of cases) rows.push(await check(prepare));
const digests = new Set(rows.flatMap(({ digest }) => digest ?? []));
const failed = digests.size !== 1 || rows.some(({ failure }) => failure);
for (const { name, digest, seconds, skipped, failure } of rows) {
	const outcome = skipped ? `skipped: ${skipped}` : (failure ?? `${short(digest)}  ${seconds.toFixed(1)} s`);
	console.log(`${name.padEnd(44)} ${outcome}`);
}
console.log(failed ? "The digests differ, or a check failed" : `All digests are ${[...digests][0]}`);
process.exitCode = failed ? 1 : 0;

/** The kernels' and the logits' digest, 16 digits each. */
function short(digests) {
	return digests
		.split(" ")
		.map((digest) => digest.slice(0, 16))
		.join(" ");
}

async function check(prepare) {
	const { name, command, skipped } = await prepare();
	if (skipped) return { name, skipped };
	const [program, ...flags] = command;
	const started = performance.now();
	try {
		const { stdout } = await run(program, [...flags, script], { timeout: 300_000 });
		return { name, digest: stdout.trim(), seconds: (performance.now() - started) / 1000 };
	} catch (error) {
		// Exit code 1 with a digest: another one than the published.
		const digest = error.stdout?.trim();
		return {
			name,
			digest: digest || undefined,
			failure: digest ? `${digest} (not the published digests)` : error.message,
		};
	}
}

/** Another Node as npm packages it: the newest of a major version. */
async function otherNode(major, arch) {
	const name = `node ${major} ${arch}`;
	if (!linux) return { name, skipped: "only on Linux" };
	const folder = `${cache}${major}-${arch}`;
	if (!existsSync(`${folder}/bin/node`)) {
		const failed = await fetchNode(`node-linux-${arch}@${major}`, folder);
		if (failed) return { name, skipped: failed };
	}
	return { name, command: [`${folder}/bin/node`] };
}

async function fetchNode(spec, folder) {
	mkdirSync(folder, { recursive: true });
	try {
		const { stdout } = await run("npm", ["pack", spec, "--pack-destination", folder, "--json", "--loglevel", "error"]);
		const archive = `${folder}/${JSON.parse(stdout)[0].filename}`;
		await run("tar", ["-xzf", archive, "-C", folder, "--strip-components=1", "package/bin/node"]);
		rmSync(archive);
		return null;
	} catch (error) {
		rmSync(folder, { recursive: true, force: true });
		return `npm could not fetch ${spec} (${error.message.split("\n")[0]})`;
	}
}

async function arm64UnderQemu(major) {
	const node = await otherNode(major, "arm64");
	if (node.skipped) return node;
	const name = `${node.name} under qemu`;
	if (!hasQemu() && process.getuid() === 0) installQemu();
	if (!hasQemu()) return { name, skipped: "qemu-user, libc6-arm64-cross and libstdc++6-arm64-cross are not installed" };
	return { name, command: ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", ...node.command] };
}

function hasQemu() {
	const found = spawnSync("qemu-aarch64", ["--version"]).status === 0;
	return (
		found &&
		existsSync("/usr/aarch64-linux-gnu/lib/libstdc++.so.6") &&
		existsSync("/usr/aarch64-linux-gnu/lib/libc.so.6")
	);
}

function installQemu() {
	const packages = ["qemu-user", "libc6-arm64-cross", "libstdc++6-arm64-cross"];
	const install = () =>
		spawnSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages]).status === 0;
	if (!install()) {
		spawnSync("apt-get", ["update", "-qq"]);
		install();
	}
}
