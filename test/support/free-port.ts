import { createServer } from "node:net";
import { systemRandom } from "../../src/io/random.ts";

/**
 * A port nobody listens on, for programs that cannot choose one themselves or that are started again on theirs. It is below those that
 * listeners on port 0 and outgoing connections get, so that nothing else on this machine comes by it in the meantime.
 */
export async function freePort(): Promise<number> {
	for (;;) {
		const port = 15_000 + Math.floor(systemRandom.uniform() * 15_000);
		if (await isFree(port)) return port;
	}
}

function isFree(port: number): Promise<boolean> {
	return new Promise((resolve) => {
		const server = createServer().once("error", () => resolve(false));
		server.listen(port, () => server.close(() => resolve(true)));
	});
}
