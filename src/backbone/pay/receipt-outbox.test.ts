import { afterEach, describe, expect, test } from "vitest";
import { fakeClock, settle } from "../../../test/support/fake-clock.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { silentLog } from "../../io/log.ts";
import type { ReceiptSubmission, ReceiptVerdict } from "../../ledger/submission.ts";
import { ReceiptOutbox } from "./receipt-outbox.ts";

const receipt = (byte: number, answer: ReceiptSubmission["answer"] = null): ReceiptSubmission => ({
	body: Uint8Array.of(byte),
	signature: new Uint8Array(64),
	answer,
});
const refused: ReceiptVerdict = { status: "refused", code: "bad_receipt", text: "" };

let outbox: ReceiptOutbox;
afterEach(() => outbox.close());

/** `post` decides by the receipt's first byte. */
function start(post: (byte: number, submission: ReceiptSubmission) => Promise<ReceiptVerdict>) {
	const clock = fakeClock();
	const posted: number[] = [];
	const acknowledged: string[] = [];
	outbox = new ReceiptOutbox({
		clock,
		random: seededRandom(1),
		log: silentLog,
		post(submission) {
			posted.push(submission.body[0]!);
			return post(submission.body[0]!, submission);
		},
		acknowledged: (id, { status }) => acknowledged.push(`${id} ${status}`),
	});
	return { clock, posted, acknowledged };
}

describe("ReceiptOutbox", () => {
	test("sends each receipt until the hub has it; waits longer each time the hub is away", async () => {
		let away = true;
		const { clock, posted, acknowledged } = start(async () => {
			if (away) throw new Error("away");
			return { status: "confirmed", entry: 1 };
		});
		outbox.add("a.1", receipt(1));
		await settle();
		await clock.advance(1_000);
		await clock.advance(2_000);
		expect(posted).toEqual([1, 1, 1]);
		away = false;
		await clock.advance(4_000);
		expect(acknowledged).toEqual(["a.1 confirmed"]);
		expect(outbox.size).toBe(0);
		expect(clock.pending).toBe(0);
	});

	test("a refused receipt never holds up another, and is offered again later", async () => {
		const { clock, posted, acknowledged } = start(async (byte) =>
			byte === 1 ? refused : { status: "unconfirmed", entry: byte },
		);
		for (const byte of [1, 2, 3]) outbox.add(`a.${byte}`, receipt(byte));
		expect(await outbox.flush()).toBe(false);
		expect(acknowledged).toEqual(["a.2 unconfirmed", "a.3 unconfirmed"]);
		expect(outbox.size).toBe(1);
		const before = posted.length;
		await clock.advance(130_000);
		expect(posted.length).toBeGreaterThan(before);
	});

	test("a countersignature that comes while its receipt is on the way goes after it", async () => {
		const answers: ReceiptSubmission["answer"][] = [];
		let arrive = () => {};
		const { acknowledged } = start(async (_, { answer }) => {
			answers.push(answer);
			await new Promise<void>((resolve) => {
				arrive = resolve;
			});
			return { status: answer === null ? "unconfirmed" : "confirmed", entry: 1 };
		});
		outbox.add("a.1", receipt(1));
		const countersigned = { signature: new Uint8Array(64) };
		outbox.add("a.1", receipt(1, countersigned));
		arrive();
		await settle();
		arrive();
		await settle();
		expect(answers).toEqual([null, countersigned]);
		expect(acknowledged).toEqual(["a.1 unconfirmed", "a.1 confirmed"]);
		expect(outbox.size).toBe(0);
	});
});
