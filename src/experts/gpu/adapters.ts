/// <reference types="@webgpu/types" />
import { KvasirError } from "../../errors.ts";

/** A graphics device as npm webgpu (Dawn) shows it. */
export interface Adapter {
	/** Stable text to name it by: `webgpu:ID`. */
	readonly id: string;
	readonly name: string;
	/** vulkan, metal, d3d12. */
	readonly backend: string;
	/** Computes on the CPU: used only when named by its id. */
	readonly software: boolean;
}

/** Dawn's objects; all of them must stay referenced for as long as one is used, or the process crashes. */
export interface OpenDevice {
	readonly gpu: GPU;
	readonly adapter: GPUAdapter;
	readonly device: GPUDevice;
	readonly facts: Adapter;
}

interface Webgpu {
	create(options: string[]): GPU;
	readonly globals: object;
}

/** Loads Dawn. Throws `gpu_unavailable` with the loader's own words. */
async function loadWebgpu(): Promise<Webgpu> {
	try {
		const webgpu = (await import("webgpu")) as unknown as Webgpu;
		Object.assign(globalThis, webgpu.globals);
		return webgpu;
	} catch (cause) {
		throw new KvasirError("gpu_unavailable", `Cannot load WebGPU: ${String((cause as Error).message)}`, {
			cause,
			hint: "Install the optional package webgpu for this platform: npm install webgpu",
		});
	}
}

const softwareNames = /swiftshader|llvmpipe|lavapipe|software|warp|basic render/i;

/** Every adapter that Dawn can open here, without opening one. Several devices of one name are one adapter: Dawn opens the first. */
export async function listAdapters(): Promise<Adapter[]> {
	const { create } = await loadWebgpu();
	// Dawn lists its adapters only in the refusal of one that does not exist.
	const gpu = create(["adapter=kvasir lists adapters"]);
	let listing = "";
	try {
		await gpu.requestAdapter();
	} catch (error) {
		listing = String((error as Error).message);
	}
	return parseAdapterList(listing);
}

/** Reads lines such as ` * backend: 'vulkan', name: 'SwiftShader Device (Subzero)'`. */
export function parseAdapterList(listing: string): Adapter[] {
	const adapters = new Map<string, Adapter>();
	for (const [, backend = "", name = ""] of listing.matchAll(/backend: '([^']*)', name: '([^']*)'/g)) {
		if (backend === "null") continue;
		const id = `${backend}-${name}`
			.toLowerCase()
			.replaceAll(/[^a-z0-9]+/g, "-")
			.replace(/-$/, "");
		adapters.set(id, { id, name, backend, software: softwareNames.test(name) });
	}
	return [...adapters.values()];
}

/** Opens the adapter of this id with its largest buffers. Throws `gpu_unavailable` with Dawn's own words. */
export async function openDevice(id: string): Promise<OpenDevice> {
	const facts = (await listAdapters()).find((adapter) => adapter.id === id);
	if (!facts) throw new KvasirError("gpu_unavailable", `Cannot open the adapter "${id}": not there`);
	const { create } = await loadWebgpu();
	const gpu = create([`backend=${facts.backend}`, `adapter=${facts.name}`]);
	try {
		const adapter = await gpu.requestAdapter();
		if (!adapter) throw new Error("no adapter was given");
		const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
		const device = await adapter.requestDevice({ requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });
		return { gpu, adapter, device, facts };
	} catch (cause) {
		throw new KvasirError("gpu_unavailable", `Cannot open the adapter "${id}": ${String((cause as Error).message)}`, {
			cause,
		});
	}
}
