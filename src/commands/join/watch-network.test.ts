import { expect, it } from "vitest";
import { fakeClock } from "../../../test/support/fake-clock.ts";
import { ownAddresses, watchNetwork } from "./watch-network.ts";

it("watchNetwork() tells of a lost address and of a machine that slept, and of nothing else", async () => {
	const fake = fakeClock();
	let [sleptMs, addresses] = [0, new Set(["10.0.0.2", "fd00::2"])];
	const clock = { ...fake, now: () => fake.now() + sleptMs };
	let changes = 0;
	const stop = watchNetwork(
		clock,
		() => addresses,
		() => changes++,
	);
	await fake.advance(60_000);
	addresses = new Set(["10.0.0.2", "fd00::2", "172.17.0.1"]);
	await fake.advance(10_000);
	expect(changes).toBe(0);
	addresses = new Set(["fd00::2", "172.17.0.1"]);
	await fake.advance(10_000);
	expect(changes).toBe(1);
	sleptMs = 3_600_000;
	await fake.advance(10_000);
	expect(changes).toBe(2);
	stop();
	expect(fake.pending).toBe(0);
});

it("ownAddresses() leaves loopback out", () => {
	expect([...ownAddresses()].filter((address) => address.startsWith("127.") || address === "::1")).toEqual([]);
});
