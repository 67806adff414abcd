import net, { type AddressInfo } from "node:net";

/** A port nobody listens on just now, for programs that cannot choose one themselves. */
export function freePort(): Promise<number> {
	return new Promise((resolve, reject) => {
		const server = net.createServer().once("error", reject);
		server.listen(0, () => {
			const { port } = server.address() as AddressInfo;
			server.close(() => resolve(port));
		});
	});
}
