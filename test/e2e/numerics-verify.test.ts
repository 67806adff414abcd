import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { packagePath } from "../../src/io/built.ts";
import { isLong } from "../support/long.ts";
import { runCli } from "../support/run-cli.ts";

/** Of different lengths, so that together they are at different positions in every step. */
const prompts = [
	"The capital of France is",
	"The capital of Japan",
	"A",
	"The capital of Italy is Rome. The capital of Spain is Madrid. The capital of",
	"Germany is in Europe and",
	"The capital",
	"The capital of Kenya is Nairobi. Kenya",
	"Peru",
];
const layers = 4;
const topK = 4;
const hidden = 256;
const workers = ["cpu", "cpu:threads=2", "cpu:threads=3"].flatMap((kind) => ["--worker", kind]);

interface Numbers {
	readonly remote: { readonly asked: number; readonly answered: number; readonly workers: unknown[] };
	readonly logits: { readonly sha256: string };
	readonly wire: Record<"messages" | "wholeRows" | "q14" | "bytesSent" | "bytesReceived", number>;
}

/** A strict verify of the fixture: nothing but identical ends with 0. */
async function identical(
	batch: number,
	words: readonly string[],
	env: Record<string, string> = {},
	deadlineMs = 170_000,
): Promise<Numbers> {
	const asks = prompts.slice(0, batch).flatMap((prompt) => ["--prompt", prompt]);
	const chosen = ["--batch", String(batch), "--tokens", "4", ...asks, ...words];
	const { code, json } = await runCli(["verify", "--strict", "--json", "--wait", "300", ...chosen], {
		env,
		deadlineMs,
	});
	const { data, error } = json();
	expect({ code, error }).toEqual({ code: 0, error: undefined });
	const pairs = data.remote.asked;
	expect(data).toMatchObject({
		remote: { answered: pairs, fallback: 0 },
		partials: { pairs, identical: pairs, worst: 0 },
		logits: { identical: true },
		served: { pairs, bytes: pairs * hidden * 4 },
		verdict: "identical",
	});
	return data;
}

const rowsOf = ({ remote }: Numbers) => remote.asked / topK;

describe("byte-identical over workers of different thread counts", () => {
	const digests = new Map<number, Set<string>>();

	/** Every batch with every mode and every dtype, in half of the combinations; the other half is for test:long. */
	const usual = [
		[1, 0, "f32"],
		[1, 1, "q14"],
		[8, 0, "q14"],
		[8, 1, "f32"],
	] as const;
	const others = [
		[1, 0, "q14"],
		[1, 1, "f32"],
		[8, 0, "f32"],
		[8, 1, "q14"],
	] as const;

	it.each([...usual, ...(isLong ? others : [])])("%i prompts together, mode %i, %s", async (batch, mode, dtype) => {
		const data = await identical(batch, [...workers, "--mode", String(mode), "--dtype", dtype]);
		const { wire, remote, logits } = data;
		expect(remote.workers).toHaveLength(3);
		expect(wire.q14).toBe(dtype === "q14" ? wire.messages : 0);
		expect(wire.wholeRows).toBe(mode === 1 ? wire.messages : 0);
		expect(wire.bytesReceived).toBe((mode === 1 ? rowsOf(data) : remote.asked) * hidden * 4);
		const rowBytes = dtype === "q14" ? hidden * 2 + 4 : hidden * 4;
		expect(wire.bytesSent % rowBytes).toBe(0);
		if (mode === 1) expect(wire.bytesSent).toBe(rowsOf(data) * rowBytes);
		// However the rows travelled, the logits are the same bytes.
		const seen = digests.get(batch) ?? new Set();
		digests.set(batch, seen.add(logits.sha256));
		expect(seen.size).toBe(1);
	});

	it("with what pays chosen by itself: q14", async () => {
		const data = await identical(1, ["--workers", "1", "--layers", "all"]);
		expect(data.wire.q14).toBe(data.wire.messages);
		expect(rowsOf(data)).toBe((7 + 3) * layers);
	});
});

/** Fetched by scripts/self-check-everywhere.mjs, which `.ci/run` calls. */
const arm64 = packagePath(".cache/nodes/22-arm64/bin/node");
/** Node takes half a minute to start on an emulated processor, more on a busy machine. */
const emulatedMs = 400_000;
const emulator = "/usr/bin/qemu-aarch64";

it.skipIf(!existsSync(arm64) || !existsSync(emulator) || process.arch === "arm64")(
	"byte-identical with one worker on arm64",
	async () => {
		const command = JSON.stringify([emulator, "-L", "/usr/aarch64-linux-gnu", arm64]);
		const env = { NODE_ENV: "test", KVASIR_TEST_WORKER_COMMAND: command };
		const { remote } = await identical(1, ["--workers", "2"], env, emulatedMs);
		expect(remote.workers).toHaveLength(2);
	},
	emulatedMs,
);

describe("a worker with another kernel", () => {
	it("is told goodbye with the digests and what to do, exit 6", async () => {
		const env = { NODE_ENV: "test", KVASIR_TEST_SELF_CHECK: "00".repeat(32) };
		const { code, json } = await runCli(["verify", "--workers", "1", "--json"], { env, deadlineMs: 90_000 });
		const { error } = json();
		expect({ code, error: error?.code }).toEqual({ code: 6, error: "version" });
		expect(error?.message).toMatch(/self-check gave 0{16}, canonical-1 is [0-9a-f]{16}/);
		expect(error?.hint).toContain("update the older");
	});
});
