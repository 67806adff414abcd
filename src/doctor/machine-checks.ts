import { open, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { makePrivateFolder } from "../io/files.ts";
import { formatBytes } from "../io/format-amounts.ts";
import { systemError } from "../io/system-error.ts";
import type { Check } from "./check.ts";

declare const WebAssembly: { validate(module: Uint8Array): boolean };

const roomBytesMin = 2 ** 30;

/** Node itself: the version, and WebAssembly SIMD, which the canonical engine is made of. */
export function nodeCheck(version: string): Check {
	return {
		name: "node",
		async run() {
			const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
			if (major < 20 || (major === 20 && minor < 19)) {
				return { state: "failed", found: `Node ${version}`, hint: "Install Node 20.19 or newer" };
			}
			// (func (result v128) i32.const 0 i8x16.splat): valid only where SIMD is there.
			const simd = [
				0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11,
			];
			if (!WebAssembly.validate(Uint8Array.from(simd))) {
				return { state: "failed", found: `Node ${version} without WebAssembly SIMD`, hint: "This CPU is too old" };
			}
			return { state: "ok", found: `Node ${version}, WebAssembly SIMD` };
		},
	};
}

/** The home can be written durably, others cannot read its keys, and there is room. */
export function homeCheck(home: string, platform: string): Check {
	return {
		name: "home",
		async run() {
			await makePrivateFolder(home);
			await writeProbe(home);
			const exposed = platform === "win32" ? [] : await exposedKeys(home);
			if (exposed.length > 0) {
				return {
					state: "failed",
					found: `${exposed.join(", ")} can be read by others`,
					hint: `chmod 600 ${exposed.map((name) => join(home, name)).join(" ")}`,
				};
			}
			const { bavail, bsize } = await statfs(home);
			const found = `${home} can be written, ${formatBytes(bavail * bsize)} free`;
			return bavail * bsize < roomBytesMin
				? { state: "warning", found, hint: "Expert slices and journals need room" }
				: { state: "ok", found };
		},
	};
}

async function writeProbe(home: string): Promise<void> {
	const probe = join(home, ".doctor");
	try {
		const file = await open(probe, "w", 0o600);
		try {
			await file.writeFile("written");
			await file.sync();
		} finally {
			await file.close();
			await rm(probe, { force: true });
		}
	} catch (cause) {
		throw systemError(cause, `write in ${home}`) ?? cause;
	}
}

async function exposedKeys(home: string): Promise<string[]> {
	const names = ["node.key", "wallet.pem", "hub-secret"];
	const open = await Promise.all(
		names.map(async (name) => ((await stat(join(home, name)).catch(() => null))?.mode ?? 0) & 0o077),
	);
	return names.filter((_, index) => open[index] !== 0);
}

/** Memory that is really there for this process: a container's limit counts, not the machine's. */
export function memoryCheck(availableBytes: number): Check {
	return {
		name: "memory",
		async run() {
			const found = `${formatBytes(availableBytes)} free for Kvasir`;
			return availableBytes < roomBytesMin
				? { state: "warning", found, hint: "Hold fewer experts: --hold, --memory" }
				: { state: "ok", found };
		},
	};
}
