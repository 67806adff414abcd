import { join } from "node:path";
import { makePrivateFolder } from "../../io/files.ts";
import { lockHome } from "../../io/home-lock.ts";
import { defineCommand } from "../program/command.ts";
import { list, toggle, value } from "../program/options.ts";
import { count, formatHostPort, hostPort, oneOf, path, text } from "../program/readers.ts";
import { untilStopped } from "../program/until-stopped.ts";

const drainMs = 8_000;

export const serveGatewayCommand = defineCommand({
	path: "serve-gateway",
	section: "gateway",
	summary: "the public edge: admit workers and splice them to the hub",
	options: {
		listen: value("--listen <host:port>", "the public address", hostPort, { host: null, port: 443 }),
		tlsCert: value("--tls-cert <file>", "certificate chain in PEM, read again when it changes and on SIGHUP", path),
		tlsKey: value("--tls-key <file>", "its private key in PEM", path),
		plain: toggle("--plain", "no TLS here: a proxy in front ends it, or everything is on loopback"),
		publicHosts: list(
			"--public-host <host>",
			"a name that workers dial and sign, with its port unless 443; repeatable",
			text,
		),
		trustProxy: list("--trust-proxy <cidr>", "a proxy that may set X-Forwarded-For; repeatable", text),
		hub: value("--hub <host:port>", "the hub's relay port", hostPort, { host: "127.0.0.1", port: 7301 }),
		hubApi: value("--hub-api <host:port>", "the hub's API port", hostPort, { host: "127.0.0.1", port: 7302 }),
		secretFile: value("--hub-secret-file <file>", "the secret that the hub made", path),
		admission: value("--admission <mode>", "who may join", oneOf("open", "allow-list", "invite"), "open"),
		admitRate: value("--admit-rate <n>", "upgrades let in each second", count(1, 100_000), 20),
		admin: value("--admin <host:port>", "health, metrics, status; never public", hostPort, {
			host: "127.0.0.1",
			port: 9443,
		}),
		db: value("--db <file|url>", "the wallets' store: a SQLite file or postgres://...", text),
	},
	example:
		"kvasir serve-gateway --listen :443 --tls-cert chain.pem --tls-key key.pem --public-host gate.example --hub 10.0.0.2:7301 --hub-api 10.0.0.2:7302 --hub-secret-file hub-secret",
	async run(context, options) {
		await makePrivateFolder(context.home);
		const { home, host } = context;
		const [
			{ openGatewayLedger },
			{ readSecret },
			{ readCertificate, watchCertificate },
			{ creditFromHub },
			{ openGateway },
			{ openAdmissionStore },
		] = await Promise.all([
			import("../../ledger/gateway-ledger.ts"),
			import("../program/secret-file.ts"),
			import("./certificate.ts"),
			import("./credit-from-hub.ts"),
			import("./open-gateway.ts"),
			import("../../splice/gateway/admission-store.ts"),
		]);
		const certificate = await readCertificate(options);
		const secret = await readSecret(options.secretFile ?? join(home, "hub-secret"), host.platform);
		const lock = await lockHome(home, "gateway");
		const location = options.db ?? join(home, "gateway.db");
		const store = await openGatewayLedger(location);
		const lists = await openAdmissionStore(location, context);
		try {
			const gateway = await openGateway(context, { ...options, certificate, secret, store, lists });
			const unwatch = watchCertificate(options, context, (newest) => gateway.useCertificate(newest));
			const crediting = creditFromHub({ ...context, hubApi: options.hubApi, secret, store });
			context.emit(
				{ event: "listening", port: gateway.address.port, adminPort: gateway.admin.port },
				`gateway: ${formatHostPort(gateway.address)}, admin ${formatHostPort(gateway.admin)}`,
			);
			await untilStopped(context);
			unwatch();
			const drained = gateway.drain(drainMs);
			await crediting.close();
			// The next process may start while the live links of this one end.
			lock.release();
			await drained;
			await gateway.close();
			return {};
		} finally {
			await lists.close();
			await store.close();
			lock.release();
		}
	},
});
