import { afterEach, describe, expect, test } from "vitest";
import { recompute } from "../../../test/support/audited-swarm.ts";
import { settle } from "../../../test/support/fake-clock.ts";
import { type MemoryBackbone, memoryBackbone, requestOf, testModel } from "../../../test/support/memory-backbone.ts";
import { expertVector, type Script } from "../../../test/support/scripted-worker.ts";
import { silentLog } from "../../io/log.ts";
import type { Dispatch } from "../../protocol/messages.ts";
import { type AuditEvent, type AuditParts, Audits } from "./audits.ts";
import { type Evidence, evidenceText, parseEvidence } from "./evidence.ts";

const { hidden } = testModel;

let backbone: MemoryBackbone;
let audits: Audits;
let log: string[];
let failures: AuditEvent[];
let kept: Evidence[];
afterEach(() => backbone.close());

function start(options: Partial<AuditParts> = {}): void {
	log = [];
	failures = [];
	kept = [];
	backbone = memoryBackbone({ accepted: (dispatch) => audits.accepted(dispatch) });
	audits = new Audits({
		model: testModel,
		clock: backbone.clock,
		random: { bytes: () => new Uint8Array(0), uniform: () => 0.5 },
		log: silentLog,
		engineClass: "f32",
		recompute,
		keep: async (evidence) => void kept.push(evidence),
		hold: (_, id) => log.push(`hold ${id}`),
		release: (_, id) => log.push(`release ${id}`),
		condemn: () => log.push("condemn"),
		emit: (event) => failures.push(event),
		...options,
	});
}

/** A worker that flips one value of its nth answer. */
const lying = (nth: number, script: Script = {}): Script => {
	let answers = 0;
	return {
		...script,
		onDispatch(dispatch, worker) {
			if (++answers !== nth) return worker.answer(dispatch);
			const vectors = new Float32Array(dispatch.rowCount * hidden).fill(7);
			worker.link.send({
				kind: "partials",
				id: dispatch.id,
				computeUs: 1,
				dtype: "f32",
				vectors: new Uint8Array(vectors.buffer),
			});
		},
	};
};

async function ask(times: number, sequence = 1): Promise<void> {
	for (let round = 0; round < times; round++) {
		await backbone.dispatcher.request(requestOf([[1, 2]], { sequence: [sequence] }));
		await settle();
	}
}

describe("Audits", () => {
	test("the first 32 of a key are all audited, also over new links; held from receipts meanwhile", async () => {
		start({ share: 0 });
		const first = await backbone.join({ epoch: 1 });
		await ask(20);
		first.link.close(1000, "");
		await settle();
		await backbone.join({ epoch: 2 });
		await ask(20);
		expect(audits.counts).toEqual({ passed: 32, failed: 0, skipped: 0 });
		expect(log.slice(0, 4)).toEqual(["hold 1", "release 1", "hold 2", "release 2"]);
	});

	test("afterwards a share, drawn at random", async () => {
		const draws = [0.9, 0.01, 0.9, 0.9, 0.015];
		start({ firstOfKey: 0, random: { bytes: () => new Uint8Array(0), uniform: () => draws.shift() ?? 0.9 } });
		await backbone.join();
		await ask(3);
		expect(audits.counts.passed).toBe(1);
	});

	test("a wrong answer: it is condemned while it is held, its sequences are named, the evidence replays", async () => {
		start();
		await backbone.join(lying(3));
		await ask(1, 10);
		await ask(1, 11);
		await ask(1, 12);
		expect(audits.counts).toMatchObject({ passed: 2, failed: 1 });
		expect(log.slice(-2)).toEqual(["condemn", "release 3"]);
		expect(failures).toMatchObject([{ event: "audit_failed", id: 3, layer: 1, expert: null, tainted: [12] }]);
		const evidence = parseEvidence(evidenceText(kept[0]!));
		expect(evidence.asked).toEqual(kept[0]!.asked);
		expect(evidence.answer).toEqual(new Uint8Array(kept[0]!.answer));
		expect(new Float32Array(evidence.answer.buffer)[0]).toBe(7);
	});

	test("sequences since the last passed audit are tainted, not only the one that was caught", async () => {
		let auditing = true;
		const uniform = () => (auditing ? 0 : 1);
		start({ firstOfKey: 0, share: 0.5, timeShareMax: 1e9, random: { bytes: () => new Uint8Array(0), uniform } });
		await backbone.join(lying(4));
		await ask(1, 20);
		auditing = false;
		await ask(1, 21);
		await ask(1, 22);
		auditing = true;
		await ask(1, 23);
		expect(failures[0]!.tainted).toEqual([21, 22, 23]);
	});

	test("a passed audit clears nothing above one that still waits, whichever answer came first", async () => {
		start();
		const held: Dispatch[] = [];
		const liar = lying(2);
		const worker = await backbone.join({ onDispatch: (dispatch) => void held.push(dispatch) });
		const asked = [30, 31].map((one) => backbone.dispatcher.request(requestOf([[1, 2]], { sequence: [one] })));
		await settle();
		for (const dispatch of held.reverse()) liar.onDispatch!(dispatch, worker);
		await Promise.all(asked);
		await settle();
		expect(audits.counts).toMatchObject({ passed: 1, failed: 1 });
		expect(failures).toMatchObject([{ id: 1, tainted: [30, 31] }]);
	});

	test("before the last receipt one dispatch of the tail is audited", async () => {
		start({ firstOfKey: 0, share: 0 });
		await backbone.join();
		await ask(5);
		expect(audits.counts.passed).toBe(0);
		const worker = backbone.roster.workers[0]!;
		await audits.finish(worker);
		await audits.finish(worker);
		expect(audits.counts.passed).toBe(1);
	});

	test("audits take no more than their share of time; what is skipped is counted", async () => {
		start({
			firstOfKey: 0,
			share: 1,
			async recompute(batch) {
				await backbone.clock.advance(100);
				return recompute(batch);
			},
		});
		await backbone.join();
		for (let asked = 1; asked <= 10; asked++) {
			await ask(1);
			await expect.poll(() => audits.counts.passed + audits.counts.skipped).toBe(asked);
		}
		expect(audits.counts.passed).toBe(1);
		await backbone.clock.advance(2000);
		await ask(1);
		await expect.poll(() => audits.counts.passed).toBe(2);
	});

	test("a tolerance class is allowed its tolerance, and no more", async () => {
		const scaled = (factor: number) => (dispatch: Dispatch, worker: { link: { send(message: never): unknown } }) => {
			const rows = new Float32Array(new Uint8Array(dispatch.rows).buffer);
			const vectors = new Float32Array(dispatch.expert.length * hidden);
			dispatch.expert.forEach((id, pair) => {
				vectors.set(
					expertVector(dispatch.layer, id, rows).map((value) => value * factor),
					pair * hidden,
				);
			});
			worker.link.send({
				kind: "partials",
				id: dispatch.id,
				computeUs: 1,
				dtype: "f32",
				vectors: new Uint8Array(vectors.buffer),
			} as never);
		};
		for (const [factor, failed] of [
			[1.03, 0],
			[1.05, 1],
		] as const) {
			start();
			await backbone.join({
				engineClass: "ort:1:cpu:x",
				holds: [{ layer: 1, first: 1, count: 1 }],
				onDispatch: scaled(factor),
			});
			await ask(1);
			expect(audits.counts.failed).toBe(failed);
			backbone.close();
		}
	});

	test("an audit that cannot be made costs the worker nothing", async () => {
		start({ recompute: () => Promise.reject(new Error("no memory")) });
		await backbone.join();
		await ask(1);
		expect(audits.counts).toEqual({ passed: 0, failed: 0, skipped: 1 });
		expect(log).toEqual(["hold 1", "release 1"]);
	});
});
