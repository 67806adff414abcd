import { listen } from "../backbone/links/listen.ts";
import { Parking } from "../backbone/links/park.ts";
import type { HubAddress } from "../backbone/links/park-dial.ts";
import { createRelayServer } from "../backbone/links/relay-server.ts";
import type { Clock } from "../io/clock.ts";
import type { KeyPair } from "../io/crypto.ts";
import { silentLog } from "../io/log.ts";
import type { Random } from "../io/random.ts";

/** The backbone's own WebSocket server, which sends every message back: parked at a hub, and listening for a proxy to dial. */
export interface EchoBackbone {
	readonly port: number;
	close(): Promise<void>;
}

export interface EchoBackboneParts {
	readonly hub: HubAddress;
	readonly identity: KeyPair;
	readonly model: string;
	readonly clock: Clock;
	readonly random: Random;
}

/** Resolves once a socket is parked at the hub. Rejects with the reason of the first one that could not be parked. */
export async function startEchoBackbone(parts: EchoBackboneParts): Promise<EchoBackbone> {
	const server = createRelayServer({
		receive(transport) {
			transport.onMessage = (message) => transport.send([message]);
		},
		log: silentLog,
	});
	const { port } = await listen(server, { host: "127.0.0.1", port: 0 });
	let parking: Parking | null = null;
	const close = async () => {
		await parking?.close();
		await server.close();
	};
	try {
		await new Promise<void>((resolve, reject) => {
			parking = new Parking({
				...parts,
				count: 4,
				log: silentLog,
				adopt: (socket) => server.adopt(socket),
				emit: (event) => (event.event === "parked" ? resolve() : reject(event.error)),
			});
		});
	} catch (error) {
		await close();
		throw error;
	}
	return { port, close };
}
