import { afterEach, expect, test } from "vitest";
import type { Dispatch } from "../../src/protocol/messages.ts";
import { type AuditedSwarm, auditedSwarm } from "../support/audited-swarm.ts";
import { settle } from "../support/fake-clock.ts";
import { testModel } from "../support/memory-backbone.ts";
import type { ScriptedWorker } from "../support/scripted-worker.ts";

const dispatchBytes = BigInt(2 * testModel.hidden * 4);

let swarm: AuditedSwarm;
let loser: ScriptedWorker;
let owed: Dispatch;
afterEach(() => swarm.close());

/** The first of two workers is slow and was overtaken; it has not reacted yet. */
async function overtake(options: Parameters<typeof auditedSwarm>[0] = {}): Promise<void> {
	swarm = await auditedSwarm(options);
	loser = await swarm.join({
		seed: 1,
		onDispatch(dispatch) {
			owed = dispatch;
		},
	});
	await swarm.join({ seed: 2 });
	const asked = swarm.ask(8);
	await swarm.backbone.clock.advance(500);
	await asked;
}

test("a hedge's loser in time: its receipt waits for it and has its pairs", async () => {
	await overtake({ share: 0 });
	await swarm.issue();
	expect(await swarm.ledger()).toEqual({ bytes: dispatchBytes, unpaid: {} });
	loser.answer(owed);
	await swarm.issue();
	expect(await swarm.ledger()).toEqual({ bytes: 2n * dispatchBytes, unpaid: {} });
	await swarm.backbone.clock.advance(60_000);
	expect(await swarm.ledger()).toEqual({ bytes: 2n * dispatchBytes, unpaid: {} });
});

test("one that is late is in its receipt, unpaid", async () => {
	await overtake({ share: 0 });
	await swarm.backbone.clock.advance(1_000);
	loser.answer(owed);
	await swarm.issue();
	expect(await swarm.ledger()).toEqual({ bytes: dispatchBytes, unpaid: { cancelled_late: 1 } });
});

test("one that is wrong is caught, unpaid and quarantined, and taints nothing: it was not used", async () => {
	await overtake({ share: 1 });
	const vectors = new Uint8Array(testModel.hidden * 4);
	loser.link.send({ kind: "partials", id: owed.id, computeUs: 1, dtype: "f32", vectors });
	await settle();
	expect(swarm.failures).toMatchObject([{ id: owed.id, tainted: [] }]);
	expect(swarm.backbone.roster.workers.map(({ quarantined }) => quarantined)).toEqual([true, false]);
	await swarm.issue();
	expect(await swarm.ledger()).toEqual({ bytes: dispatchBytes, unpaid: { wrong: 1 } });
});

test("a link that ends with a loser open: the rest is receipted, the loser is nowhere", async () => {
	await overtake({ share: 0 });
	loser.link.close(1001, "gone");
	await swarm.backbone.clock.advance(100);
	await swarm.issue();
	expect(await swarm.ledger()).toEqual({ bytes: dispatchBytes, unpaid: {} });
	expect(swarm.book.pending).toBe(0);
});
