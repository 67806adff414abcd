import { listAdapters, type OpenDevice, openDevice } from "../../src/experts/gpu/adapters.ts";

/** Every graphics device, and every driver that computes on the CPU (scripts/software-vulkan.mjs). */
export const adapterIds = (await listAdapters()).map(({ id }) => id);

/** Whether there is any. */
export const hasDevice = adapterIds.length > 0;

/** The fastest for tests: anything rather than SwiftShader, which compiles slowly. */
export const adapterId = adapterIds.find((id) => !id.includes("swiftshader")) ?? adapterIds[0] ?? "";

/** Opens that one. */
export function openAnyDevice(): Promise<OpenDevice> {
	return openDevice(adapterId);
}

/** Runs a compute shader of one workgroup of 64 a chunk: binding 0 holds `inputs`, 1 gets the words it gives back. */
export async function runShader(
	{ device }: OpenDevice,
	code: string,
	inputs: Uint32Array,
	outputWords: number,
	groups: number,
): Promise<Uint32Array> {
	const { STORAGE, COPY_DST, COPY_SRC, MAP_READ } = GPUBufferUsage;
	const buffer = (size: number, usage: number) => device.createBuffer({ size, usage });
	const source = buffer(inputs.byteLength, STORAGE | COPY_DST);
	const target = buffer(outputWords * 4, STORAGE | COPY_SRC);
	const staging = buffer(outputWords * 4, COPY_DST | MAP_READ);
	device.queue.writeBuffer(source, 0, inputs.buffer as ArrayBuffer, inputs.byteOffset, inputs.byteLength);
	const module = device.createShaderModule({ code });
	const pipeline = device.createComputePipeline({ layout: "auto", compute: { module } });
	const encoder = device.createCommandEncoder();
	const pass = encoder.beginComputePass();
	pass.setPipeline(pipeline);
	const entries = [source, target].map((bound, binding) => ({ binding, resource: { buffer: bound } }));
	pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
	pass.dispatchWorkgroups(groups);
	pass.end();
	encoder.copyBufferToBuffer(target, 0, staging, 0, outputWords * 4);
	device.queue.submit([encoder.finish()]);
	await staging.mapAsync(GPUMapMode.READ);
	const words = new Uint32Array(staging.getMappedRange().slice(0));
	for (const made of [source, target, staging]) made.destroy();
	return words;
}
