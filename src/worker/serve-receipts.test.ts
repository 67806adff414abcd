import { describe, expect, it } from "vitest";
import { settle } from "../../test/support/fake-clock.ts";
import { backboneIdentity, workerIdentity } from "../../test/support/link-pair.ts";
import { plainEngine } from "../../test/support/plain-engine.ts";
import { bytes } from "../../test/support/sample-messages.ts";
import { dims, dispatch, row, scene, welcome } from "../../test/support/serve-scene.ts";
import { sha256 } from "../io/crypto.ts";
import { emptyDigest, extendDigest } from "../ledger/digest-chain.ts";
import { encodeReceipt, parseReceipt, type Receipt, receiptHash } from "../ledger/receipt.ts";
import { signReceipt, verifyCountersign } from "../ledger/receipt-signatures.ts";
import type { Countersign, Partials } from "../protocol/messages.ts";
import { bindPayout } from "../protocol/payout.ts";

describe("receipts", () => {
	async function afterWork() {
		const parts = await scene(plainEngine());
		for (let id = 1; id <= 3; id++) parts.backbone.send(dispatch(id, [row()], [[0, 1]]));
		await settle();
		const hashes = new Map(parts.arrived.map((message, i) => [(message as Partials).id, parts.digests[i]!] as const));
		parts.arrived.length = 0;
		return { ...parts, hashes };
	}

	function receiptOf(hashes: ReadonlyMap<number, Uint8Array>, change: Partial<Receipt> = {}) {
		const paid = [1, 2, 3].filter((id) => !change.unpaid?.some(([unpaid]) => unpaid === id));
		const receipt: Receipt = {
			ledgerId: bytes(16),
			relay: "",
			backbone: backboneIdentity.publicKey,
			worker: workerIdentity.publicKey,
			payout: bytes(32, 5),
			payoutSignature: bindPayout(workerIdentity, bytes(32, 5)).signature,
			session: welcome.session,
			number: 1,
			previous: new Uint8Array(32),
			modelId: welcome.model.modelId,
			topK: 2,
			policy: 1,
			from: 0,
			to: 3,
			pairs: BigInt(paid.length),
			servedBytes: BigInt(paid.length * dims.hidden * 4),
			unpaid: [],
			digest: paid.reduce((digest, id) => extendDigest(digest, id, 1, hashes.get(id)!), emptyDigest),
			issuedAtMs: 0,
			...change,
		};
		const body = encodeReceipt(receipt);
		return { body, message: { kind: "receipt" as const, body, signature: signReceipt(backboneIdentity, body) } };
	}

	it("countersigns what its own log says too, twice the same", async () => {
		const { backbone, arrived, hashes, tally } = await afterWork();
		const { body, message } = receiptOf(hashes);
		backbone.send(message);
		backbone.send(message);
		await settle();
		const [reply, again] = arrived as Countersign[];
		expect(again).toEqual(reply);
		if (!("signature" in reply!.answer)) throw new Error("not signed");
		expect(verifyCountersign(parseReceipt(body), body, reply!.answer.signature)).toBe(true);
		expect(tally.snapshot().pay).toMatchObject({ receipts: 1, pairs: 3n, nano: BigInt(3 * dims.hidden * 4 * 7) });
		backbone.send(
			receiptOf(hashes, {
				number: 2,
				previous: receiptHash(body),
				from: 3,
				to: 4,
				pairs: 0n,
				servedBytes: 0n,
				digest: emptyDigest,
				unpaid: [[4, "late"]],
			}).message,
		);
		await settle();
		expect(arrived.at(-1)).toMatchObject({ number: 2, answer: { signature: expect.anything() } });
	});

	it("counts what is not paid, by reason", async () => {
		const { backbone, hashes, tally, arrived } = await afterWork();
		backbone.send(receiptOf(hashes, { unpaid: [[2, "late"]] }).message);
		await settle();
		expect(arrived[0]).toMatchObject({ answer: { signature: expect.anything() } });
		expect(tally.snapshot().unpaid).toEqual({ late: 1 });
	});

	it.each<[string, Partial<Receipt>]>([
		["pairs", { pairs: 2n, servedBytes: BigInt(2 * dims.hidden * 4) }],
		["digest", { digest: sha256(bytes(1)) }],
		["served bytes", { servedBytes: BigInt(3 * dims.hidden * 4 + 12) }],
	])("answers with its own figures when the %s are wrong", async (_, change) => {
		const { backbone, hashes, arrived, tally } = await afterWork();
		const honest = parseReceipt(receiptOf(hashes).body);
		backbone.send(receiptOf(hashes, change).message);
		await settle();
		expect((arrived[0] as Countersign).answer).toEqual({ pairs: 3, digest: new Uint8Array(honest.digest) });
		expect(tally.snapshot().pay).toMatchObject({ receipts: 0, disputed: 1, nano: 0n });
	});

	it.each<[string, Partial<Receipt>]>([
		["another worker", { worker: bytes(32, 77) }],
		["another backbone", { backbone: workerIdentity.publicKey }],
		["another wallet", { payout: bytes(32, 78) }],
		["another session", { session: bytes(16, 79) }],
		["a number that is not next", { number: 2, previous: bytes(32) }],
		["another model", { modelId: bytes(32, 80) }],
	])("does not answer a receipt for %s", async (_, change) => {
		const { backbone, hashes, arrived, tally } = await afterWork();
		backbone.send(receiptOf(hashes, change).message);
		await settle();
		expect(arrived).toEqual([]);
		expect(tally.snapshot().pay.ignored).toBe(1);
	});

	it("drains: takes nothing new, finishes, waits for the receipt, says goodbye", async () => {
		const { backbone, hashes, arrived, serving, clock } = await afterWork();
		const drained = serving.drain("signal", 30_000);
		backbone.send(dispatch(9, [row()], [[0, 1]]));
		await clock.advance(100);
		expect(arrived[0]).toEqual({ kind: "drain", reason: "signal", graceMs: 30_000 });
		expect(arrived[1]).toMatchObject({ kind: "refuse", id: 9, code: "draining" });
		backbone.send(receiptOf(hashes).message);
		await clock.advance(100);
		await drained;
		expect(arrived.at(-1)).toMatchObject({ kind: "bye", code: "draining" });
		expect(await serving.ended).toEqual({ kind: "left" });
		expect(await backbone.ended).toEqual({ code: 1000, reason: "signal" });
	});

	it("leaves when the grace is over, receipt or not", async () => {
		const { serving, clock } = await afterWork();
		const drained = serving.drain("signal", 500);
		await clock.advance(499);
		let over = false;
		drained.then(() => {
			over = true;
		});
		await settle();
		expect(over).toBe(false);
		await clock.advance(40);
		await drained;
	});
});
