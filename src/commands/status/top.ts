import { KvasirError } from "../../errors.ts";
import { defineCommand } from "../program/command.ts";
import { value } from "../program/options.ts";
import { isTerminal } from "../program/output.ts";
import { count, formatHostPort, hostPort } from "../program/readers.ts";

export const topCommand = defineCommand({
	path: "top",
	section: "status",
	summary: "a live screen of a gateway's busiest links",
	options: {
		admin: value("--admin <host:port>", "the gateway's admin address", hostPort, { host: "127.0.0.1", port: 9443 }),
		every: value("--every <seconds>", "between two looks", count(1, 3600), 1),
	},
	example: "kvasir top --admin 127.0.0.1:9443",
	async run({ host, global, signal, clock }, { admin, every }) {
		if (global.json || !isTerminal(host.env, host.stdout)) {
			throw new KvasirError("usage", "Cannot show a screen: this is no terminal", {
				hint: "kvasir status --json says the same once",
			});
		}
		const [{ readStatus }, { gatewayView }, { openGatewayScreen }] = await Promise.all([
			import("./read-status.ts"),
			import("./gateway-view.ts"),
			import("../../ui/open-gateway-screen.tsx"),
		]);
		const gateway = formatHostPort(admin);
		const look = async () => ({ status: await readStatus(`http://${gateway}`, signal), atMs: clock.monotonic() });
		let last = await look();
		const screen = openGatewayScreen(gatewayView(gateway, last, last), host.stdout as NodeJS.WriteStream);
		try {
			for (;;) {
				await clock.sleep(every * 1000, signal);
				const newest = await look();
				screen.update(gatewayView(gateway, newest, last));
				last = newest;
			}
		} catch (error) {
			if (!signal.aborted) throw error;
			return {};
		} finally {
			screen.close();
		}
	},
});
