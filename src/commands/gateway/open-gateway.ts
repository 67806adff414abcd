import type { GatewayStore } from "../../ledger/gateway-store.ts";
import { type AdmissionMode, storedAdmission } from "../../splice/gateway/admission.ts";
import type { AdmissionStore } from "../../splice/gateway/admission-store.ts";
import type { Certificate } from "../../splice/gateway/certificate.ts";
import { type Gateway, startGateway } from "../../splice/gateway/gateway.ts";
import { walletRoutes } from "../../splice/gateway/wallet-routes.ts";
import type { Context } from "../program/context.ts";
import { dialAt, listenAt } from "../program/listen-at.ts";
import type { HostPort } from "../program/readers.ts";

interface GatewaySettings {
	readonly listen: HostPort;
	readonly admin: HostPort;
	readonly hub: HostPort;
	readonly publicHosts: readonly string[];
	readonly trustProxy: readonly string[];
	readonly admission: AdmissionMode;
	readonly lists: AdmissionStore;
	readonly admitRate: number;
	readonly certificate: Certificate | null;
	readonly secret: Uint8Array;
	readonly store: GatewayStore;
}

/** The gateway that the settings of `serve-gateway` describe. */
export function openGateway({ clock, random, log }: Context, settings: GatewaySettings): Promise<Gateway> {
	return startGateway(
		{
			listen: listenAt(settings.listen),
			admin: listenAt(settings.admin),
			certificate: settings.certificate,
			publicHosts: settings.publicHosts,
			hub: dialAt(settings.hub),
			hubSecret: settings.secret,
			trustProxy: settings.trustProxy,
			admission: storedAdmission(settings.admission, settings.lists, log),
			limits: { admitRatePerSecond: settings.admitRate },
			routes: walletRoutes(settings.store),
		},
		{ clock, random, log },
	);
}
