import { KvasirError } from "../../errors.ts";
import type { Adapter } from "./adapters.ts";

/** A device that onnxruntime-node names; `webgpu` is the only one that computes canonical-1. */
const gpuProviders = ["webgpu", "cuda", "coreml", "dml"] as const;
export type GpuProvider = (typeof gpuProviders)[number];

export interface GpuChoice {
	readonly provider: GpuProvider;
	/** An adapter's id; null: any that is no software. */
	readonly id: string | null;
}

/** Reads `--gpu[=auto|webgpu|webgpu:ID|cuda|coreml|dml]`; without a value it is auto. Throws `usage`. */
export function parseGpuChoice(text: string): GpuChoice {
	const [name = "", id] = text.split(":");
	const provider = text === "" || text === "auto" ? "webgpu" : gpuProviders.find((known) => known === name);
	if (!provider || id === "" || (id !== undefined && provider !== "webgpu")) {
		throw new KvasirError("usage", `Cannot use the device "${text}": not auto, webgpu, webgpu:ID, cuda, coreml or dml`);
	}
	return { provider, id: id ?? null };
}

/**
 * The adapters to try, in order, and what was passed over and why. Software adapters compute on the CPU: only when named.
 */
export function adaptersToTry(
	adapters: readonly Adapter[],
	id: string | null,
): { candidates: readonly Adapter[]; refused: readonly string[] } {
	if (id !== null) {
		const named = adapters.filter((adapter) => adapter.id === id);
		const others = adapters.map((adapter) => adapter.id).join(", ") || "none";
		return { candidates: named, refused: named.length > 0 ? [] : [`webgpu:${id}: not there; there is: ${others}`] };
	}
	return {
		candidates: adapters.filter(({ software }) => !software),
		refused: adapters
			.filter(({ software }) => software)
			.map((adapter) => `webgpu:${adapter.id} (${adapter.name}): computes on the CPU, used only when named`),
	};
}

/** The error of a machine where no device can be used: everything that was tried, and what helps. Exit code 7. */
export function gpuUnavailable(asked: string, tried: readonly string[]): KvasirError {
	const list = tried.length > 0 ? tried.join("; ") : "webgpu: no adapter (no Vulkan, Metal or Direct3D 12 driver)";
	return new KvasirError("gpu_unavailable", `Cannot use a GPU (${asked}): ${list}`, {
		hint: "Install the driver of the graphics card (Linux: with Vulkan), or name an adapter with --gpu=webgpu:ID. Without --gpu the CPU computes the same bytes",
		facts: { asked, tried },
	});
}
