import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openDecodeRoom } from "../../src/backbone/decode/decode-room.ts";
import { type Evidence, evidenceText } from "../../src/backbone/pay/evidence.ts";
import { runCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";

it("verify --evidence replays a failed audit anywhere: wrong, right, or of another model", async () => {
	const home = await temporaryHome();
	const room = await openDecodeRoom({ home, model: "tiny", engine: "canonical" });
	const { name, modelId, engineClass, shape } = room.facts;
	const { hidden } = shape;
	const rows = Float32Array.from({ length: hidden }, (_, i) => Math.sin(i));
	const pairs = { layer: 1, rowCount: 1, rowIndex: Uint16Array.of(0, 0), expert: Uint16Array.of(2, 5) };
	const expected = await room.decoder.local.compute({ ...pairs, rows: { dtype: "f32", values: rows } });
	await room.close();
	const answer = expected.slice();
	answer[hidden + 3] = -answer[hidden + 3]!;
	const evidence: Evidence = {
		model: { name, modelId: Buffer.from(modelId).toString("hex"), hidden },
		...{ worker: "worker", engineClass, auditedBy: engineClass, session: "ab", id: 7, atMs: 1 },
		asked: { ...pairs, mode: 0, dtype: "f32", weight: Float32Array.of(1, 1), rows: new Uint8Array(rows.buffer) },
		answer: new Uint8Array(answer.buffer),
		expected: new Uint8Array(expected.slice().buffer),
	};
	const replay = async (changes: Partial<Evidence>) => {
		const path = join(home, "evidence.json");
		await writeFile(path, evidenceText({ ...evidence, ...changes }));
		return runCli(["verify", "--evidence", path, "--home", home, "--json"], { deadlineMs: 60_000 });
	};
	const convicted = await replay({});
	expect(convicted.code).toBe(0);
	expect(convicted.json().data).toEqual({
		...{ worker: "worker", engineClass, layer: 1, expert: 5, reproduced: true, verdict: "wrong" },
	});
	const acquitted = await replay({ answer: evidence.expected });
	expect(acquitted.code).toBe(3);
	expect(acquitted.json().data).toMatchObject({ expert: null, verdict: "right" });
	const foreign = await replay({ model: { ...evidence.model, modelId: "00".repeat(32) } });
	expect([foreign.code, foreign.json().error?.code]).toEqual([8, "model_mismatch"]);
	const alien = await replay({ asked: { ...evidence.asked, layer: 99 } });
	expect([alien.code, alien.json().error?.code]).toEqual([8, "bad_file"]);
});
