import { expect, it } from "vitest";
import { receiptChain, testSession } from "../../../test/support/receipts.ts";
import { temporaryHome } from "../../../test/support/temporary-home.ts";
import { parseReceipt } from "../../ledger/receipt.ts";
import { countersignReceipt, signReceipt, verifyCountersign, verifyReceipt } from "../../ledger/receipt-signatures.ts";
import { openLocalReceipts, readLocalReceipts } from "../../wallet/local-receipts.ts";
import { localReceiptOf } from "./paid-receipts.ts";

it("a kept receipt has its figures, and signatures that still prove them when it is read again", async () => {
	const home = await temporaryHome();
	const session = testSession("ab".repeat(16));
	const [first, second] = receiptChain(session, [24, 40]).map(({ body }) => body) as [Uint8Array, Uint8Array];
	const log = await openLocalReceipts(home);
	const countersignature = countersignReceipt(session.worker, first);
	await log.append(localReceiptOf({ body: first, signature: signReceipt(session.backbone, first), countersignature }));
	const signature = signReceipt(session.backbone, second);
	await log.append(localReceiptOf({ body: second, signature, countersignature: null }));
	await log.close();
	const kept = [];
	for await (const receipt of readLocalReceipts(home)) kept.push(receipt);
	expect(kept).toMatchObject([
		{ number: 1, pairs: 24n, servedBytes: 24n * 3072n * 4n, countersigned: true },
		{ number: 2, pairs: 40n, countersigned: false, signed: { countersignature: null } },
	]);
	const bytes = (text: string) => new Uint8Array(Buffer.from(text, "base64"));
	const { signed } = kept[0]!;
	const body = bytes(signed!.body);
	expect(verifyReceipt(parseReceipt(body), body, bytes(signed!.signature))).toBe(true);
	expect(verifyCountersign(parseReceipt(body), body, bytes(signed!.countersignature!))).toBe(true);
});
