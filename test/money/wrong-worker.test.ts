import { describe, expect, test } from "vitest";
import { evidenceText, parseEvidence } from "../../src/backbone/pay/evidence.ts";
import type { Dispatch } from "../../src/protocol/messages.ts";
import { replayEvidence } from "../../src/verify/evidence.ts";
import { auditedSwarm, recompute } from "../support/audited-swarm.ts";
import { settle } from "../support/fake-clock.ts";
import { testModel } from "../support/memory-backbone.ts";
import { type Script, type ScriptedWorker, scriptedAnswer } from "../support/scripted-worker.ts";
import { seededRandom } from "../support/seeded-random.ts";

const { hidden } = testModel;
/** Of one dispatch: a row for two experts. */
const dispatchBytes = BigInt(2 * hidden * 4);
const wrongOnceIn = 1_000;
const issueEvery = 500;
const firstOfKey = 32;

function answerWith(vectors: Float32Array, { id }: Dispatch, { link }: ScriptedWorker): void {
	link.send({ kind: "partials", id, computeUs: 1, dtype: "f32", vectors: new Uint8Array(vectors.buffer) });
}

/** Turns one sign of every thousandth answer around, and is right otherwise. */
const wrongOnceInAThousand: Script = {
	onDispatch(dispatch, worker) {
		const vectors = scriptedAnswer(dispatch, hidden);
		if (dispatch.id % wrongOnceIn === 0) vectors[0] = -vectors[0]!;
		answerWith(vectors, dispatch, worker);
	},
};

/** The dispatch whose audit finds the first wrong answer: what the seed says, drawn here as the audits draw. */
function predicted(seed: number, share: number, most: number): number | null {
	const random = seededRandom(seed);
	let untouched = 0;
	for (let id = 1; id <= most; id++) {
		const drawn = id <= firstOfKey || random.uniform() < share;
		if (drawn && id % wrongOnceIn === 0) return id;
		if (!drawn && untouched > 0) random.uniform(); // which dispatch stands for the tail
		untouched = drawn ? 0 : untouched + 1;
	}
	return null;
}

/** A seed with which the worker gets away with it a few times. */
function seedFor(share: number): { seed: number; id: number } {
	for (let seed = 1; ; seed++) {
		const id = predicted(seed, share, 12_000);
		if (id !== null && (share === 1 || id >= 3 * wrongOnceIn)) return { seed, id };
	}
}

describe.each([
	[1, issueEvery],
	[1, Number.POSITIVE_INFINITY],
	[0.02, issueEvery],
])("a worker that is wrong once in 1,000 answers, audited at %d, receipted every %d", (share, every) => {
	test("is caught by the dispatch the seed predicts, quarantined, keeps what lies below it whenever that was receipted, loses the rest", async () => {
		const { seed, id } = seedFor(share);
		const swarm = await auditedSwarm({ share, seed });
		await swarm.join(wrongOnceInAThousand);
		const worker = swarm.backbone.roster.workers[0]!;
		let asked = 0;
		while (swarm.failures.length === 0 && asked < id + 10) {
			await swarm.ask(1 + (asked % 100));
			asked++;
			// An audit takes a few turns of the event loop; the next dispatch waits here only so that the count is exact.
			if (asked === id || (asked % wrongOnceIn === 0 && asked < id)) await settle(2);
			if (asked % every === 0 && asked < id) await swarm.issue();
		}
		expect(swarm.failures.map((failure) => failure.id)).toEqual([id]);
		expect(asked).toBe(id);
		expect(worker.usable).toBe(false);
		expect(worker.quarantinedUntilMs).toBe(swarm.backbone.clock.monotonic() + 600_000);
		expect(swarm.failures[0]!.tainted).toContain(1 + ((id - 1) % 100));

		// It is not asked again, over a new link either; all below the failed audit is paid, and nothing from there on.
		await swarm.ask();
		await swarm.issue();
		const { bytes, unpaid } = await swarm.ledger();
		expect(bytes).toBe(BigInt(id - 1) * dispatchBytes);
		expect(unpaid).toEqual({ wrong: 1 });

		const evidence = parseEvidence(evidenceText(swarm.evidence[0]!));
		const own = { modelId: testModel.modelId, engineClass: "f32", compute: recompute };
		expect(await replayEvidence(evidence, own)).toMatchObject({ verdict: "wrong", reproduced: true, layer: 1 });
		await swarm.close();
	});
});

test("what a worker was asked before its audit failed and answers afterwards is neither used nor paid", async () => {
	const swarm = await auditedSwarm({ share: 1 });
	const held: (() => void)[] = [];
	await swarm.join({
		onDispatch(dispatch, worker) {
			if (dispatch.id === 2) return void held.push(() => worker.answer(dispatch));
			answerWith(new Float32Array(hidden * dispatch.rowCount), dispatch, worker);
		},
	});
	const both = [swarm.ask(1), swarm.ask(2)];
	await settle();
	expect(swarm.failures).toHaveLength(1);
	for (const answer of held) answer();
	await Promise.all(both);
	await swarm.issue();
	expect(await swarm.ledger()).toEqual({ bytes: 0n, unpaid: { wrong: 1, quarantined: 1 } });
	await swarm.close();
});

describe("a new key's first answer", () => {
	const lies: Readonly<Record<string, (right: Float32Array) => Float32Array>> = {
		zeros: (right) => right.map(() => 0),
		junk: (right) => right.map((_, i) => Math.fround(Math.sin(i + 1))),
		"scaled by a little": (right) => right.map((value) => Math.fround(value * 1.001)),
		"one bit": (right) => {
			const bits = new Uint32Array(right.slice().buffer);
			bits[0]! ^= 1;
			return new Float32Array(bits.buffer);
		},
	};
	test.each(Object.entries(lies))("that is a lie (%s) is caught at once and pays nothing", async (_, lie) => {
		const swarm = await auditedSwarm({ share: 0 });
		await swarm.join({
			onDispatch: (dispatch, worker) => answerWith(lie(scriptedAnswer(dispatch, hidden)), dispatch, worker),
		});
		await swarm.ask();
		await settle();
		expect(swarm.failures.map(({ id }) => id)).toEqual([1]);
		await swarm.issue();
		expect(await swarm.ledger()).toEqual({ bytes: 0n, unpaid: { wrong: 1 } });
		await swarm.close();
	});

	test("that is padded ends the link and pays nothing", async () => {
		const swarm = await auditedSwarm();
		const worker = await swarm.join({
			onDispatch: (dispatch, padder) => answerWith(new Float32Array(2 * hidden * dispatch.rowCount), dispatch, padder),
		});
		await swarm.ask();
		await worker.ended;
		await swarm.issue();
		expect(await swarm.ledger()).toEqual({ bytes: 0n, unpaid: {} });
		await swarm.close();
	});
});
