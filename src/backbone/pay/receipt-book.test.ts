import { afterEach, describe, expect, test } from "vitest";
import { settle } from "../../../test/support/fake-clock.ts";
import { type MemoryBackbone, memoryBackbone, requestOf, testModel } from "../../../test/support/memory-backbone.ts";
import { countersignAll, scriptedIdentity } from "../../../test/support/scripted-worker.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { silentLog } from "../../io/log.ts";
import { parseReceipt } from "../../ledger/receipt.ts";
import { countersignReceipt } from "../../ledger/receipt-signatures.ts";
import type { ReceiptSubmission } from "../../ledger/submission.ts";
import type { ReceiptMessage } from "../../protocol/messages.ts";
import type { DispatchAccount } from "../dispatch/dispatcher.ts";
import { ReceiptBook } from "./receipt-book.ts";

let backbone: MemoryBackbone;
let book: ReceiptBook;
let posted: ReceiptSubmission[];
afterEach(async () => {
	await book.close();
	backbone.close();
});

function start(): void {
	posted = [];
	const account: DispatchAccount = {
		paid: (...facts) => book.paid(...facts),
		unpaid: (...facts) => book.unpaid(...facts),
		void: (...facts) => book.void(...facts),
	};
	backbone = memoryBackbone({
		account,
		listener: {
			sent: (worker, id) => book.sent(worker, id),
			countersigned: (worker, message) => book.countersigned(worker, message),
		},
		joined: (worker) => book.open(worker),
	});
	book = new ReceiptBook({
		identity: scriptedIdentity(200),
		model: testModel,
		clock: backbone.clock,
		random: seededRandom(3),
		log: silentLog,
		api: {
			async postReceipt(_, submission) {
				posted.push(submission);
				return { status: "confirmed", entry: posted.length };
			},
		},
		hub: () => ({ host: "hub", apiPort: 1, ledgerId: new Uint8Array(16).fill(7) }),
		journals: null,
		emit() {},
	});
}

const work = async () => {
	await backbone.dispatcher.request(requestOf([[0, 1]]));
	await settle();
};
const numbers = () => posted.map(({ body, answer }) => [parseReceipt(body).number, answer === null ? null : "signed"]);

describe("ReceiptBook", () => {
	test("issues a receipt every 30 s while there is something to receipt, and none while there is nothing", async () => {
		start();
		await backbone.join({ onOther: countersignAll });
		await work();
		await backbone.clock.advance(29_000);
		expect(posted).toEqual([]);
		await backbone.clock.advance(2_000);
		expect(numbers()).toEqual([[1, "signed"]]);
		await backbone.clock.advance(120_000);
		expect(posted.length).toBe(1);
		await work();
		await backbone.clock.advance(30_000);
		expect(numbers()).toEqual([
			[1, "signed"],
			[2, "signed"],
		]);
	});

	test("after 10 s without a countersignature it goes unconfirmed; one that comes later upgrades it, a forged one does not", async () => {
		start();
		const worker = await backbone.join();
		await work();
		void book.issue();
		await backbone.clock.advance(9_000);
		expect(posted).toEqual([]);
		await backbone.clock.advance(2_000);
		expect(numbers()).toEqual([[1, null]]);
		const { body } = worker.others.find((message): message is ReceiptMessage => message.kind === "receipt")!;
		const sign = (signature: Uint8Array) => worker.link.send({ kind: "countersign", number: 1, answer: { signature } });
		sign(countersignReceipt(scriptedIdentity(99), body));
		await settle();
		expect(posted.length).toBe(1);
		sign(countersignReceipt(worker.identity, body));
		await settle();
		expect(numbers()).toEqual([
			[1, null],
			[1, "signed"],
		]);
	});

	test("one receipt of a session is in flight at a time, whoever asks for more", async () => {
		start();
		const worker = await backbone.join();
		await work();
		void book.issue();
		await settle();
		await work();
		void book.issue();
		await settle();
		expect(worker.others.filter(({ kind }) => kind === "receipt").length).toBe(1);
		await backbone.clock.advance(10_001);
		expect(worker.others.filter(({ kind }) => kind === "receipt").length).toBe(2);
	});

	test("late work is listed by its reason, and not paid", async () => {
		start();
		await backbone.join({ onDispatch() {}, onOther: countersignAll });
		const asked = backbone.dispatcher.request(requestOf([[0, 1]]));
		await backbone.clock.advance(1_500);
		await asked;
		await book.flush();
		const { pairs, unpaid, servedBytes } = parseReceipt(posted[0]!.body);
		expect({ pairs, unpaid, servedBytes }).toEqual({ pairs: 0n, unpaid: [[1, "late"]], servedBytes: 0n });
		expect(book.counts.unpaid).toEqual(new Map([["late", 1]]));
	});
});
