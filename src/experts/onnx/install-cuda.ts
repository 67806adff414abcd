import { spawn } from "node:child_process";
import { access } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { KvasirError } from "../../errors.ts";

export interface InstallCudaOptions {
	/** The Node binary. */
	readonly execPath: string;
	readonly env: Readonly<Record<string, string | undefined>>;
	/** Such as `linux/x64`. */
	readonly platform: string;
	readonly signal: AbortSignal;
}

const libraries = ["libonnxruntime_providers_cuda.so", "libonnxruntime_providers_shared.so"];
const outputBytesMax = 4096;

/**
 * Runs onnxruntime-node's own installer for the CUDA 12 libraries that its package leaves out (some hundred MB).
 * Resolves with their folder. Throws `usage` on other platforms, `network` with the installer's own words.
 */
export async function installCuda({ execPath, env, platform, signal }: InstallCudaOptions): Promise<string> {
	if (platform !== "linux/x64") {
		throw new KvasirError("usage", `Cannot install CUDA libraries on ${platform}: onnxruntime has them for linux/x64`, {
			hint: "--gpu=webgpu needs no library beyond the driver",
		});
	}
	const root = dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json"));
	const folder = join(root, "bin/napi-v6/linux/x64");
	const child = spawn(execPath, [join(root, "script/install.js")], {
		cwd: root,
		env: { ...env, ONNXRUNTIME_NODE_INSTALL: "cuda12" } as NodeJS.ProcessEnv,
		stdio: ["ignore", "pipe", "pipe"],
		signal,
	});
	let output = "";
	for (const stream of [child.stdout, child.stderr]) {
		stream.setEncoding("utf8").on("data", (text: string) => {
			output = (output + text).slice(-outputBytesMax);
		});
	}
	const code = await new Promise<number | null>((resolve, reject) => {
		child.once("error", reject);
		child.once("close", resolve);
	});
	const missing = await Promise.all(
		libraries.map((name) =>
			access(join(folder, name)).then(
				() => [],
				() => [name],
			),
		),
	);
	if (code === 0 && missing.flat().length === 0) return folder;
	throw new KvasirError("network", `Cannot install the CUDA libraries: ${reasonIn(output)}`, {
		hint: "This command needs internet access, and HTTPS_PROXY where there is a proxy; without it: --gpu=webgpu",
		facts: { exit: code, missing: missing.flat() },
	});
}

/** The line of an installer's output that tells most. */
function reasonIn(output: string): string {
	const lines = output.split("\n").map((line) => line.trim());
	return lines.find((line) => /error/i.test(line)) ?? lines.filter(Boolean).at(-1) ?? "the installer said nothing";
}
