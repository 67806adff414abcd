import fc from "fast-check";
import { expect, it } from "vitest";
import { receiptChain, submissionOf, testSession } from "../../test/support/receipts.ts";
import { KvasirError } from "../errors.ts";
import { parseSubmission, parseVerdict, submissionJson, type WorkerAnswer } from "./submission.ts";

const s = testSession("0123456789abcdef0123456789abcdef");
const [receipt] = receiptChain(s, [8]);

it("parseSubmission() reads what submissionJson() wrote, whatever the worker said", () => {
	const answers: (WorkerAnswer | undefined)[] = [undefined, null, { pairs: 7, digest: new Uint8Array(32).fill(5) }];
	for (const answer of answers) {
		const submission = submissionOf(s, receipt!, answer);
		const read = parseSubmission(JSON.parse(JSON.stringify(submissionJson(submission))));
		expect(Buffer.from(read.body)).toEqual(Buffer.from(submission.body));
		expect(Buffer.from(read.signature)).toEqual(Buffer.from(submission.signature));
		expect(submissionJson(read)).toEqual(submissionJson(submission));
	}
});

it("both readers throw nothing but malformed, whatever the JSON", () => {
	const good = submissionJson(submissionOf(s, receipt!)) as Record<string, unknown>;
	const changed = fc
		.tuple(fc.constantFrom(...Object.keys(good)), fc.jsonValue())
		.map(([key, value]) => ({ ...good, [key]: value }));
	fc.assert(
		fc.property(fc.oneof(fc.jsonValue(), changed), (json) => {
			for (const read of [parseSubmission, parseVerdict]) {
				try {
					read(json);
				} catch (error) {
					expect(error).toBeInstanceOf(KvasirError);
					expect((error as KvasirError).code).toBe("malformed");
				}
			}
		}),
	);
});
