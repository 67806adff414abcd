import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adapterId, adapterIds, hasDevice } from "../../../test/support/device.ts";
import { isLong } from "../../../test/support/long.ts";
import { packagePath } from "../../io/built.ts";
import { systemClock } from "../../io/clock.ts";
import { openModel } from "../../model/open-model.ts";
import { canonicalDigest } from "../self-check.ts";
import { type OpenDevice, openDevice } from "./adapters.ts";
import { proveDevice } from "./device-proof.ts";
import { GpuEngine } from "./gpu-engine.ts";

const cases = packagePath("fixtures/reference/canonical-cases/");
const floats = (name: string) => new Float32Array(new Uint8Array(readFileSync(cases + name)).buffer);

// A driver that computes on the CPU also compiles on the CPU.
const slowMs = 300_000;

describe.skipIf(!hasDevice).each(hasDevice ? adapterIds : ["none"])("GpuEngine on %s", { timeout: slowMs }, (id) => {
	let open: OpenDevice;
	let engine: GpuEngine;
	beforeAll(async () => {
		open = await openDevice(id);
		engine = new GpuEngine(open, 2 ** 26);
	});
	afterAll(() => engine.close());

	it("computes the real experts of the canonical cases bit for bit", async () => {
		const model = await openModel(packagePath("fixtures/tiny/kvasir-tiny-35moe-Q4_K_M.gguf"));
		const index = JSON.parse(readFileSync(`${cases}index.json`, "utf8"));
		for (const { layer, expert, rows, x, y } of index.expert) {
			await engine.load(layer, expert, await model.weights.expert(layer, expert));
			const result = await engine.compute({
				layer,
				rowCount: rows,
				rows: { dtype: "f32", values: floats(x) },
				rowIndex: Uint16Array.from({ length: rows }, (_, row) => row),
				expert: new Uint16Array(rows).fill(expert),
			});
			expect(Buffer.from(result.buffer).equals(Buffer.from(floats(y).buffer))).toBe(true);
		}
		await model.weights.close();
	});

	// SwiftShader takes half a minute to compile what every type and shape needs.
	it.runIf(isLong || id === adapterId)(
		"gives the digest of the self-check, and times one expert on the device and on a CPU core",
		async () => {
			const before = engine.bytesHeld;
			const proof = await proveDevice(engine, open.facts, systemClock);
			expect(Buffer.from(proof.selfCheck).toString("hex")).toBe(canonicalDigest);
			expect(proof).toMatchObject({ id: `webgpu:${open.facts.id}`, rows: 16 });
			expect(Math.min(proof.deviceMs, proof.cpuMs, proof.selfCheckMs)).toBeGreaterThan(0);
			expect(engine.bytesHeld).toBe(before);
		},
	);
});
