import net, { type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { eventually } from "../../test/support/splice-swarm.ts";
import { systemClock } from "../io/clock.ts";
import { tie } from "./tie.ts";

/** Two pairs of connected sockets: outer ends to play with, inner ends to tie. */
async function twoPairs() {
	const server = net.createServer({ allowHalfOpen: true });
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as net.AddressInfo;
	async function pair(): Promise<[outer: Socket, inner: Socket]> {
		const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve));
		const outer = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true });
		outer.on("error", () => {});
		return [outer, await accepted];
	}
	const [left, innerLeft] = await pair();
	const [right, innerRight] = await pair();
	return {
		left,
		right,
		innerLeft,
		innerRight,
		[Symbol.dispose]() {
			for (const socket of [left, right, innerLeft, innerRight]) socket.destroy();
			server.close();
		},
	};
}

const options = { clock: systemClock, idleMs: 5_000, halfClosedMs: 5_000 };

function received(socket: Socket): { bytes: number; ended: boolean; closed: boolean } {
	const seen = { bytes: 0, ended: false, closed: false };
	socket.on("data", (part) => {
		seen.bytes += part.length;
	});
	socket.on("end", () => {
		seen.ended = true;
	});
	socket.on("close", () => {
		seen.closed = true;
	});
	return seen;
}

describe("tie()", () => {
	it("passes an end on as an end and keeps the other direction", async () => {
		using pairs = await twoPairs();
		const tied = tie(pairs.innerLeft, pairs.innerRight, options);
		const right = received(pairs.right);
		const left = received(pairs.left);
		pairs.left.end("last words");
		await eventually("the end arrived", () => right.ended);
		expect(right.bytes).toBe(10);
		pairs.right.write(Buffer.alloc(100_000));
		await eventually("the answer arrived", () => left.bytes === 100_000);
		pairs.right.end();
		expect(await tied).toBe("ended");
	});

	it("ends both sides when one is reset", async () => {
		using pairs = await twoPairs();
		const tied = tie(pairs.innerLeft, pairs.innerRight, options);
		const right = received(pairs.right);
		pairs.left.resetAndDestroy();
		expect(await tied).toBe("reset");
		await eventually("the other side is closed", () => right.ended || right.closed);
	});

	it("does not read faster than the other side takes: memory is bounded, nothing is lost", async () => {
		using pairs = await twoPairs();
		const tied = tie(pairs.innerLeft, pairs.innerRight, options);
		const bytes = 64 << 20;
		pairs.left.end(Buffer.alloc(bytes));
		// The right side reads nothing: kernel buffers and high-water marks fill, then the left side stops.
		let before = -1;
		await eventually("the flow stops", () => {
			const same = pairs.innerLeft.bytesRead === before && before > 0;
			before = pairs.innerLeft.bytesRead;
			return same;
		});
		expect(pairs.innerRight.writableLength).toBeLessThan(1 << 20);
		expect(pairs.innerLeft.bytesRead).toBeLessThan(bytes);
		const right = received(pairs.right);
		await eventually("everything arrived", () => right.ended, 20_000);
		expect(right.bytes).toBe(bytes);
		pairs.right.end();
		expect(await tied).toBe("ended");
	});

	it("cuts a pair on which nothing moves, also one whose reader stalls", async () => {
		using pairs = await twoPairs();
		expect(await tie(pairs.innerLeft, pairs.innerRight, { ...options, idleMs: 100 })).toBe("idle");
		using stalled = await twoPairs();
		const tied = tie(stalled.innerLeft, stalled.innerRight, { ...options, idleMs: 200 });
		stalled.left.write(Buffer.alloc(64 << 20));
		expect(await tied).toBe("idle");
	});

	it("cuts a pair that stays half closed", async () => {
		using pairs = await twoPairs();
		const tied = tie(pairs.innerLeft, pairs.innerRight, { ...options, halfClosedMs: 50 });
		pairs.left.end();
		expect(await tied).toBe("half_closed");
	});

	it("ends at once when a side is gone already", async () => {
		using pairs = await twoPairs();
		pairs.innerLeft.destroy();
		expect(await tie(pairs.innerLeft, pairs.innerRight, options)).toBe("reset");
		expect(pairs.innerRight.destroyed).toBe(true);
	});
});
