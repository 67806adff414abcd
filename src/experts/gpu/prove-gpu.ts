import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import { silentLog } from "../../io/log.ts";
import type { DeviceProof } from "../engine.ts";
import type { Adapter } from "./adapters.ts";
import { proofBytes } from "./device-proof.ts";
import { openGpuEngine } from "./gpu-host.ts";

/** Opens an adapter in a process of its own, only to have it proved. Throws `gpu_unavailable`. */
export async function proveGpu({ id }: Adapter, clock: Clock): Promise<DeviceProof> {
	const device = { engine: "canonical", adapter: id, id: `webgpu:${id}`, memoryBytes: proofBytes } as const;
	const source = () => Promise.reject(new KvasirError("closed", "Cannot refill a device that was only proved"));
	const engine = await openGpuEngine({ device, source, clock, log: silentLog });
	await engine.close();
	return engine.proof!;
}
