import type { AddressInfo } from "node:net";
import { KvasirError } from "../../errors.ts";
import type { RelayServer } from "./relay-server.ts";

/** Where to listen: a host (empty: all addresses) and a port (0: any free one). */
export interface ListenAddress {
	readonly host: string;
	readonly port: number;
}

/** Opens the dispatch listener; resolves with the real port. Throws `network`. */
export function listen({ http }: Pick<RelayServer, "http">, { host, port }: ListenAddress): Promise<ListenAddress> {
	return new Promise((resolve, reject) => {
		const failed = (cause: Error) =>
			reject(
				new KvasirError("network", `Cannot listen on ${host}:${port}: ${cause.message}`, {
					cause,
					hint: "Choose another address, or port 0 for any free port",
				}),
			);
		http.once("error", failed);
		http.listen({ port, ...(host === "" ? {} : { host }) }, () => {
			http.removeListener("error", failed);
			http.on("error", () => {});
			const address = http.address() as AddressInfo;
			resolve({ host: address.address, port: address.port });
		});
	});
}
