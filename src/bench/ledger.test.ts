import { expect, it } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { systemClock } from "../io/clock.ts";
import { systemRandom } from "../io/random.ts";
import { benchLedger } from "./ledger.ts";

it("stores and credits every receipt, one part after the other and both at once", async () => {
	let cpu = 0;
	const { sessions, lines } = await benchLedger({
		receipts: 120,
		sessions: 7,
		inFlight: 16,
		folder: await temporaryHome(),
		cpuMs: () => ++cpu,
		clock: systemClock,
		random: systemRandom,
	});
	expect(sessions).toBe(7);
	expect(lines.map(({ part, receipts }) => [part, receipts])).toEqual([
		["hub stores", 60],
		["gateway credits", 60],
		["both at once", 60],
	]);
	for (const { perSecond, cpuMsPerReceipt } of lines) {
		expect(perSecond).toBeGreaterThan(0);
		expect(cpuMsPerReceipt).toBe(1 / 60);
	}
});
