import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { fakeClock } from "../../../test/support/fake-clock.ts";
import { spliceLimits } from "../limits.ts";
import { ParkedSockets } from "./parked.ts";

const never = new AbortController().signal;
setMaxListeners(0, never);

/** A stream is all that a parked socket is, until it is taken. */
function stream(): Socket {
	return new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() }) as Socket;
}

function setUp() {
	const clock = fakeClock();
	const parked = new ParkedSockets(clock, ["first", "second"]);
	const park = (backbone: string, model = "tiny") => {
		const socket = stream();
		parked.add({ socket, backbone, model });
		return socket;
	};
	const take = (model = "", backbone = "", signal = never) => parked.take({ model, backbone }, signal);
	return { clock, parked, park, take };
}

describe("ParkedSockets", () => {
	it("gives the newest socket of the first backbone on the list", async () => {
		const { park, take } = setUp();
		park("second");
		const old = park("first");
		const newest = park("first");
		expect(await take()).toMatchObject({ backbone: "first", socket: newest });
		expect(await take()).toMatchObject({ backbone: "first", socket: old });
		expect(await take()).toMatchObject({ backbone: "second" });
	});

	it("gives what was asked for: a model, a backbone", async () => {
		const { park, take } = setUp();
		park("first", "a");
		park("second", "b");
		expect(await take("b")).toMatchObject({ backbone: "second" });
		expect(await take("a", "first")).toMatchObject({ model: "a" });
	});

	it("wants a name where there are several models", async () => {
		const { park, take } = setUp();
		park("first", "a");
		park("second", "b");
		expect(await take()).toBe("model_needed");
	});

	it("lets workers wait in order, each for its own wish, and for 5 s at most", async () => {
		const { clock, parked, park, take } = setUp();
		const [one, other, two] = [take("tiny"), take("other"), take("tiny")];
		expect(parked.waiting).toBe(3);
		const [a, b] = [park("first"), park("first")];
		expect(await one).toMatchObject({ socket: a });
		expect(await two).toMatchObject({ socket: b });
		await clock.advance(spliceLimits.parkedWaitMs);
		expect(await other).toBe("none_parked");
		expect([parked.waiting, clock.pending]).toEqual([0, 0]);
	});

	it("lets no more wait than its bound, forgets those who go, and sends all away when it closes", async () => {
		const { clock, parked, take } = setUp();
		const gone = new AbortController();
		const all = Array.from({ length: spliceLimits.waitingMax - 1 }, () => take("tiny"));
		const leaving = take("tiny", "", gone.signal);
		expect(await take("tiny")).toBe("waiting_full");
		gone.abort();
		expect(await leaving).toBe("closing");
		parked.close();
		expect(new Set(await Promise.all(all))).toEqual(new Set(["closing"]));
		expect(await take("tiny")).toBe("closing");
		expect(clock.pending).toBe(0);
	});

	it("drops a socket that speaks, ends or breaks", async () => {
		const { parked, park } = setUp();
		const [talks, ends, breaks] = [park("first"), park("first"), park("first")];
		expect(parked.counts()).toEqual([{ backbone: "first", model: "tiny", parked: 3 }]);
		talks.push("x");
		ends.push(null);
		breaks.destroy();
		await new Promise((resolve) => setImmediate(resolve));
		expect(parked.counts()).toEqual([]);
		expect([talks.destroyed, ends.destroyed]).toEqual([true, true]);
	});
});
