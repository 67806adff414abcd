// A Vulkan driver that computes on the CPU, so that the GPU engine is tested where no graphics device is. Debian's packages are
// downloaded and unpacked under .cache, never installed. As a command it prints what to put in a shell:
// `eval "$(node scripts/software-vulkan.mjs)"`; with `lavapipe` after it, Mesa's driver instead of SwiftShader.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cache = fileURLToPath(new URL("../.cache/vulkan", import.meta.url));
const architecture = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }[process.arch];

// Of each: packages of the machine's own release, packages of its backports, the folder of the driver's description and its name.
const drivers = {
	swiftshader: {
		packages: ["chromium-common", "libvulkan1"],
		backports: [],
		folder: "usr/lib/chromium",
		icd: /swiftshader_icd/,
	},
	// Dawn refuses Mesa 22, which is bookworm's; its backports have 25.
	lavapipe: {
		packages:
			"libvulkan1 libllvm15 libelf1 libwayland-client0 libx11-xcb1 libxcb1 libxcb-dri3-0 libxcb-present0 libxcb-randr0 libxcb-shm0 libxcb-sync1 libxcb-xfixes0 libxshmfence1 libedit2 libz3-4 libxml2 libbsd0 libicu72 libxau6 libxdmcp6 libmd0".split(
				" ",
			),
		backports: ["mesa-vulkan-drivers", "libdrm2", "libdrm-amdgpu1"],
		folder: "usr/share/vulkan/icd.d",
		icd: /^lvp_icd/,
	},
};

/**
 * The environment variables that make Vulkan use the driver; none where VK_DRIVER_FILES says already what to use.
 * Throws, with the reason, where the driver cannot be had.
 */
export function softwareVulkan(name = "swiftshader") {
	if (process.env.VK_DRIVER_FILES) return {};
	if (process.platform !== "linux" || !architecture) throw new Error(`no packages for ${process.platform}`);
	const root = `${cache}/${name}`;
	if (!existsSync(root)) unpack(drivers[name], root);
	const libraries = `${root}/usr/lib/${architecture}`;
	const file = `${root}/icd.json`;
	return {
		VK_DRIVER_FILES: file,
		VK_ICD_FILENAMES: file,
		LD_LIBRARY_PATH: `${libraries}:${root}/lib/${architecture}`,
		XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR ?? cache,
	};
}

function unpack({ packages, backports, folder, icd }, root) {
	const draft = `${root}-${process.pid}`;
	mkdirSync(draft, { recursive: true });
	try {
		if (!download(packages, draft, [])) mustDownload(packages, draft, freshLists(draft, []));
		if (backports.length > 0) mustDownload(backports, draft, freshLists(draft, backportsSources(draft)));
		for (const file of readdirSync(draft).filter((name) => name.endsWith(".deb")))
			run("dpkg", ["-x", file, "root"], draft);
		describeDriver(`${draft}/root`, root, folder, icd);
		if (!existsSync(root)) renameSync(`${draft}/root`, root);
	} finally {
		rmSync(draft, { recursive: true, force: true });
	}
}

/** The driver's description with the place of the unpacked library, at the top of the unpacked folder. */
function describeDriver(unpacked, root, folder, icd) {
	const name = readdirSync(`${unpacked}/${folder}`).find((file) => icd.test(file));
	const description = JSON.parse(readFileSync(`${unpacked}/${folder}/${name}`, "utf8"));
	const library = description.ICD.library_path.replace(/^.*\//, "");
	const beside = existsSync(`${unpacked}/${folder}/${library}`) ? folder : `usr/lib/${architecture}`;
	description.ICD.library_path = `${root}/${beside}/${library}`;
	writeFileSync(`${unpacked}/icd.json`, JSON.stringify(description));
}

function download(packages, folder, options) {
	return spawn("apt-get", ["download", "-q", ...timeouts, ...options, ...packages], folder).status === 0;
}

function mustDownload(packages, folder, options) {
	run("apt-get", ["download", "-q", ...timeouts, ...options, ...packages], folder);
}

const timeouts = ["-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"];

/** Package lists in a folder of our own: for machines that keep none, and for sources that this machine does not use. */
function freshLists(folder, sources) {
	const own = [`Dir::State=${folder}/state`, `Dir::Cache=${folder}/archives`].flatMap((option) => ["-o", option]);
	mkdirSync(`${folder}/state/lists/partial`, { recursive: true });
	mkdirSync(`${folder}/archives/archives/partial`, { recursive: true });
	run("apt-get", ["update", "-q", ...timeouts, ...own, ...sources], folder);
	return [...own, ...sources];
}

/** The backports of this machine's release, from where its other packages come. */
function backportsSources(folder) {
	const { stdout } = spawn("apt-get", ["indextargets", "--format", "$(REPO_URI) $(CODENAME)"], folder);
	const [site, release] = (stdout.split("\n").find((line) => /^\S+ [a-z]+$/.test(line)) ?? "").split(" ");
	if (!release) throw new Error("no Debian sources to derive the backports from");
	writeFileSync(`${folder}/backports.list`, `deb ${site} ${release}-backports main\n`);
	return ["-o", `Dir::Etc::sourcelist=${folder}/backports.list`, "-o", "Dir::Etc::sourceparts=-"];
}

function spawn(command, args, cwd) {
	return spawnSync(command, args, { cwd, encoding: "utf8", timeout: 180_000 });
}

function run(command, args, cwd) {
	const { status, stderr, error } = spawn(command, args, cwd);
	if (status !== 0) throw new Error(error?.message ?? (stderr.trim().split("\n").at(-1) || `${command} failed`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	for (const [name, value] of Object.entries(softwareVulkan(process.argv[2]))) {
		console.log(`export ${name}='${value}'`);
	}
}
