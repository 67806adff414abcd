// A Vulkan driver that computes on the CPU, so that the GPU engine is tested where no graphics device is. Debian's and Ubuntu's
// packages are downloaded and unpacked under .cache, never installed. As a command it prints what to put in a shell:
// `eval "$(node scripts/software-vulkan.mjs)"`; with `lavapipe` after it, Mesa's driver instead of SwiftShader.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cache = fileURLToPath(new URL("../.cache/vulkan", import.meta.url));
const architecture = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }[process.arch];

const drivers = {
	swiftshader: { packages: ["chromium-common", "libvulkan1"], icd: "usr/lib/chromium/vk_swiftshader_icd.json" },
	// Dawn refuses Mesa older than 23: bookworm has 25 in its backports.
	lavapipe: {
		packages: ["mesa-vulkan-drivers", "libvulkan1", "libllvm15", "libllvm19", "libdrm2", "libdrm-amdgpu1", "libxcb1"],
		icd: "usr/share/vulkan/icd.d",
	},
};

/**
 * The environment variables that make Vulkan use the driver; the machine's own where VK_DRIVER_FILES is set already.
 * Throws, with the reason, where the driver cannot be had.
 */
export function softwareVulkan(name = "swiftshader") {
	if (process.env.VK_DRIVER_FILES) return {};
	if (process.platform !== "linux" || !architecture) throw new Error(`no packages for ${process.platform}`);
	const { packages, icd } = drivers[name];
	const folder = `${cache}/${name}`;
	if (!existsSync(folder)) unpack(packages, folder);
	const file = icdFile(`${folder}/${icd}`, folder);
	return {
		VK_DRIVER_FILES: file,
		VK_ICD_FILENAMES: file,
		LD_LIBRARY_PATH: `${folder}/usr/lib/${architecture}`,
		XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR ?? cache,
	};
}

function unpack(packages, folder) {
	const draft = `${folder}-${process.pid}`;
	mkdirSync(draft, { recursive: true });
	try {
		const failure = download(packages, draft, []);
		if (failure && download(packages, draft, ownLists(draft))) throw new Error(failure);
		for (const file of readdirSync(draft).filter((name) => name.endsWith(".deb"))) {
			run("dpkg", ["-x", file, "root"], draft);
		}
		if (!existsSync(folder)) renameSync(`${draft}/root`, folder);
	} finally {
		rmSync(draft, { recursive: true, force: true });
	}
}

/** null, or what apt-get said. */
function download(packages, folder, options) {
	try {
		run("apt-get", ["download", "-q", "-o", "Acquire::http::Timeout=20", ...options, ...packages], folder);
		return null;
	} catch (error) {
		return error.message;
	}
}

/** Fresh package lists, for machines that keep none, in a folder of our own. */
function ownLists(folder) {
	const options = [`Dir::State=${folder}/state`, `Dir::Cache=${folder}/cache`].flatMap((option) => ["-o", option]);
	mkdirSync(`${folder}/state/lists/partial`, { recursive: true });
	mkdirSync(`${folder}/cache/archives/partial`, { recursive: true });
	run("apt-get", ["update", "-q", "-o", "Acquire::http::Timeout=20", ...options], folder);
	return options;
}

/** The driver's description; one whose library is named without a folder is copied with the unpacked one's place. */
function icdFile(path, folder) {
	if (path.endsWith(".json")) return path;
	const file = `${path}/${readdirSync(path).find((name) => name.startsWith("lvp_icd"))}`;
	const made = `${folder}/lvp_icd.json`;
	const icd = JSON.parse(readFileSync(file, "utf8"));
	icd.ICD.library_path = `${folder}/usr/lib/${architecture}/libvulkan_lvp.so`;
	writeFileSync(made, JSON.stringify(icd));
	return made;
}

function run(command, args, cwd) {
	const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8", timeout: 180_000 });
	if (status !== 0) throw new Error(error?.message ?? (stderr.trim().split("\n").at(-1) || `${command} failed`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	for (const [name, value] of Object.entries(softwareVulkan(process.argv[2]))) {
		console.log(`export ${name}='${value}'`);
	}
}
