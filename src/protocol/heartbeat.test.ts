import { describe, expect, it } from "vitest";
import { fakeClock } from "../../test/support/fake-clock.ts";
import { type Heartbeat, startHeartbeat } from "./heartbeat.ts";
import { limits } from "./limits.ts";

/** A heartbeat of 15 s, dead after 45 s, over bytes and a clock set by hand. */
function beating() {
	const clock = fakeClock();
	const state = { bytes: 0, pings: [] as number[], deaths: 0, sleptMs: 0 };
	const heartbeat: Heartbeat = startHeartbeat({
		// A clock that also runs while timers do not: the machine sleeps.
		clock: { ...clock, monotonic: () => clock.monotonic() + state.sleptMs },
		heartbeatMs: limits.heartbeatMs,
		deadMs: limits.deadMs,
		bytesRead: () => state.bytes,
		ping: (sequence) => {
			state.pings.push(sequence);
			heartbeat.sent();
		},
		dead: () => {
			state.deaths++;
		},
	});
	return { clock, state, heartbeat };
}

describe("startHeartbeat()", () => {
	it("pings at the start and when idle, not while there is traffic", async () => {
		const { clock, state, heartbeat } = beating();
		await clock.advance(14_000);
		expect(state.pings).toEqual([1]);
		for (let i = 0; i < 20; i++) {
			heartbeat.sent();
			state.bytes++;
			await clock.advance(3_000);
		}
		expect(state.pings).toEqual([1]);
		await clock.advance(20_000);
		expect(state.pings).toEqual([1, 2]);
		heartbeat.stop();
		expect(clock.pending).toBe(0);
	});

	it("counts a single byte as life, and 45 s without one as death, once", async () => {
		const { clock, state } = beating();
		await clock.advance(40_000);
		state.bytes = 1;
		await clock.advance(44_000);
		expect(state.deaths).toBe(0);
		await clock.advance(100_000);
		expect(state.deaths).toBe(1);
		expect(clock.pending).toBe(0);
	});

	it("asks the peer after a gap in its own time, and gives it 5 s", async () => {
		for (const answers of [true, false]) {
			const { clock, state, heartbeat } = beating();
			await clock.advance(10_000);
			const before = state.pings.length;
			state.sleptMs = 3_600_000;
			await clock.advance(4_000);
			expect(state.pings.length).toBe(before + 1);
			expect(state.deaths).toBe(0);
			if (answers) state.bytes++;
			await clock.advance(10_000);
			expect(state.deaths).toBe(answers ? 0 : 1);
			heartbeat.stop();
		}
	});

	it("ignores pongs nobody asked for", async () => {
		const { clock, heartbeat } = beating();
		await clock.advance(10);
		heartbeat.pong(999);
		expect(heartbeat.roundTripMs).toBeNull();
		heartbeat.pong(1);
		expect(heartbeat.roundTripMs).toBe(10);
		heartbeat.pong(1);
		heartbeat.stop();
	});
});
