import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { type LocalReceipt, openLocalReceipts, readLocalReceipts } from "./local-receipts.ts";

const receipt = (number: number): LocalReceipt => ({
	receipt: `hash ${number}`,
	backbone: "backbone",
	worker: "worker",
	payout: "wallet",
	session: "session",
	number,
	pairs: 2n ** 40n,
	servedBytes: 2n ** 53n,
	rate: 7_000_000n,
	countersigned: number % 2 === 0,
	atMs: number,
});

async function all(home: string): Promise<LocalReceipt[]> {
	const list: LocalReceipt[] = [];
	for await (const line of readLocalReceipts(home)) list.push(line);
	return list;
}

it("readLocalReceipts() finds what was appended, across restarts, a torn line and a line of something else", async () => {
	const home = await temporaryHome();
	expect(await all(home)).toEqual([]);
	const first = await openLocalReceipts(home);
	await Promise.all([1, 2, 3].map((number) => first.append(receipt(number))));
	await first.close();
	await appendFile(join(home, "receipts.jsonl"), '{"receipt":"torn","back');
	const second = await openLocalReceipts(home);
	await second.append(receipt(4));
	await second.append(receipt(2));
	await second.close();
	expect(await all(home)).toEqual([1, 2, 3, 4].map(receipt));
	expect((await readFile(join(home, "receipts.jsonl"), "utf8")).split("\n")).toHaveLength(7);
});
