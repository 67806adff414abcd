import { join } from "node:path";
import { makePrivateFolder } from "../io/files.ts";
import { lockHome } from "../io/home-lock.ts";
import { defineCommand } from "./program/command.ts";
import { dialAt, listenAt } from "./program/listen-at.ts";
import { list, value } from "./program/options.ts";
import { address, formatHostPort, hostPort, path, text } from "./program/readers.ts";
import { untilStopped } from "./program/until-stopped.ts";

const drainMs = 8_000;

export const serveHubCommand = defineCommand({
	path: "serve-hub",
	section: "hub",
	summary: "the LAN hub: tie workers to parked backbone sockets, keep the ledger",
	options: {
		relay: value("--relay <host:port>", "where the gateway and backbones connect", hostPort, {
			host: null,
			port: 7301,
		}),
		api: value("--api <host:port>", "ledger, admin and metrics", hostPort, { host: null, port: 7302 }),
		backboneKeys: list(
			"--backbone-key <key>",
			"a backbone that may park and whose receipts count; repeatable",
			address,
		),
		secretFile: value("--secret-file <file>", "the secret shared with the gateway, made on first start", path),
		dispatch: value(
			"--dispatch <host:port>",
			"dial this listening backbone instead of waiting for parked sockets",
			hostPort,
		),
		db: value("--db <file|url>", "the ledger: a SQLite file or postgres://...", text),
	},
	example: "kvasir serve-hub --relay 127.0.0.1:7301 --api 127.0.0.1:7302 --backbone-key KEY",
	async run(context, options) {
		// Nothing to read again, and no reason to end.
		context.onHangup(() => {});
		await makePrivateFolder(context.home);
		const { clock, random, log } = context;
		const [{ openHubLedger }, { startHub }, { makeSecret }, { hubLedgerRoutes, relayStore }] = await Promise.all([
			import("../ledger/hub-ledger.ts"),
			import("../splice/hub/hub.ts"),
			import("./program/secret-file.ts"),
			import("../splice/hub/hub-ledger-routes.ts"),
		]);
		const secretFile = options.secretFile ?? join(context.home, "hub-secret");
		const secret = await makeSecret(secretFile, random);
		const lock = await lockHome(context.home, "hub");
		const ledger = await openHubLedger(options.db ?? join(context.home, "hub.db"), { clock });
		try {
			const hub = await startHub(
				{
					relay: listenAt(options.relay),
					api: listenAt(options.api),
					secret,
					backboneKeys: options.backboneKeys,
					ledgerId: ledger.ledgerId,
					...(options.dispatch ? { dispatch: dialAt(options.dispatch) } : {}),
					routes: hubLedgerRoutes(ledger),
				},
				{ clock, random, log, relays: relayStore(ledger) },
			);
			const event = { event: "listening", relayPort: hub.relay.port, apiPort: hub.api.port, ledgerId: ledger.ledgerId };
			context.emit(
				{ ...event, secretFile },
				`hub: relay ${formatHostPort(hub.relay)}, api ${formatHostPort(hub.api)}, secret in ${secretFile}`,
			);
			// The hub reads nothing that could change; without a listener the signal would end it.
			const offHangup = context.onHangup(() => log.info({}, "nothing to reload"));
			await untilStopped(context);
			offHangup();
			await hub.drain(drainMs);
			await hub.close();
			return {};
		} finally {
			await ledger.close();
			lock.release();
		}
	},
});
