import { once } from "node:events";
import net, { type AddressInfo, type Socket } from "node:net";
import type { Clock } from "../io/clock.ts";

/** A TCP relay on loopback that holds every byte back for the same time, each way: a distance, without its other faults. */
export interface DelayRelay {
	readonly port: number;
	/** Where connections go; set before the first. */
	target: { readonly host: string; readonly port: number };
	close(): Promise<void>;
}

/** @param oneWayMs half of the round trip that it adds */
export async function startDelayRelay(oneWayMs: number, clock: Clock): Promise<DelayRelay> {
	const sockets = new Set<Socket>();
	const server = net.createServer({ noDelay: true }, (near) => {
		const far = net.connect({ ...relay.target, noDelay: true });
		for (const [from, to] of [
			[near, far],
			[far, near],
		] as const) {
			sockets.add(from);
			from.on("error", () => {});
			from.on("data", (chunk) => void clock.after(oneWayMs, () => to.write(chunk)));
			from.once("close", () => {
				sockets.delete(from);
				clock.after(oneWayMs, () => to.destroy());
			});
		}
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const relay: DelayRelay = {
		port: (server.address() as AddressInfo).port,
		target: { host: "127.0.0.1", port: 0 },
		async close() {
			for (const socket of sockets) socket.destroy();
			await new Promise((resolve) => server.close(resolve));
		},
	};
	return relay;
}

const exchanges = 21;

/** The median round trip of one byte over a relay that leads to an echo, milliseconds: timers are late, on a busy machine by much. */
export async function roundTripOf(relay: DelayRelay, clock: Clock): Promise<number> {
	const echo = net.createServer({ noDelay: true }, (socket) => socket.on("error", () => {}).pipe(socket));
	await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
	const before = relay.target;
	relay.target = { host: "127.0.0.1", port: (echo.address() as AddressInfo).port };
	const socket = net.connect({ host: "127.0.0.1", port: relay.port, noDelay: true });
	try {
		const times: number[] = [];
		for (let i = 0; i < exchanges; i++) {
			const startMs = clock.monotonic();
			const back = once(socket, "data");
			socket.write("?");
			await back;
			times.push(clock.monotonic() - startMs);
		}
		return times.sort((a, b) => a - b)[exchanges >> 1]!;
	} finally {
		socket.destroy();
		echo.close();
		relay.target = before;
	}
}
