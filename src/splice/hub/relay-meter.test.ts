import { describe, expect, it } from "vitest";
import { fakeClock } from "../../../test/support/fake-clock.ts";
import { silentLog } from "../../io/log.ts";
import { createRelayMeter, type RelayCount } from "./relay-meter.ts";

const facts = { worker: "w", backbone: "b", model: "tiny" };

function setUp(save: (counts: readonly RelayCount[]) => Promise<void> = async () => {}) {
	const clock = fakeClock();
	const saved: RelayCount[][] = [];
	const saveRelays = async (counts: readonly RelayCount[]) => {
		saved.push([...counts]);
		await save(counts);
	};
	const meter = createRelayMeter({ saveRelays }, { clock, log: silentLog });
	const begin = (relay: string) => {
		const bytes = { fromWorker: 0, toWorker: 0 };
		return { bytes, relay: meter.begin({ relay, ...facts }, () => ({ ...bytes })) };
	};
	return { clock, saved, meter, begin };
}

describe("createRelayMeter()", () => {
	it("stores a row at the start, all live ones together every 10 s, and the last count at the end", async () => {
		const { clock, saved, meter, begin } = setUp();
		const [a, b] = [begin("a"), begin("b")];
		await clock.advance(0);
		expect(saved.map((counts) => counts.map(({ relay }) => relay))).toEqual([["a"], ["b"]]);
		a.bytes.fromWorker = 10;
		await clock.advance(10_000);
		expect(saved[2]).toMatchObject([
			{ relay: "a", bytesFromWorker: 10 },
			{ relay: "b", bytesFromWorker: 0 },
		]);
		a.bytes.fromWorker = 25;
		a.relay.end();
		a.relay.end();
		expect(meter.find("a")).toBeNull();
		b.bytes.toWorker = 7;
		expect(meter.total()).toEqual({ fromWorker: 25, toWorker: 7 });
		b.relay.end();
		await meter.settled();
		expect(saved.slice(3)).toMatchObject([[{ relay: "a", bytesFromWorker: 25 }], [{ relay: "b", bytesToWorker: 7 }]]);
		meter.stop();
		expect(clock.pending).toBe(0);
	});

	it("does not pile up writes on a store that is slow, and outlives one that fails", async () => {
		let release: () => void = () => {};
		const slow = setUp(() => new Promise((resolve) => (release = resolve)));
		slow.begin("a");
		await slow.clock.advance(60_000);
		expect(slow.saved).toHaveLength(1);
		release();
		await slow.clock.advance(10_000);
		expect(slow.saved).toHaveLength(2);

		const failing = setUp(() => Promise.reject(new Error("disk full")));
		failing.begin("a").relay.end();
		await failing.meter.settled();
		expect(failing.saved).toHaveLength(2);
	});
});
