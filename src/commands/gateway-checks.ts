import type { Check } from "../doctor/check.ts";
import { gatewayCheck, proxyCheck, tlsCheck } from "../doctor/gateway-check.ts";
import { idleCheck, idleTimes } from "../doctor/idle-check.ts";
import { pathCheck } from "../doctor/path-check.ts";
import { loadNodeKey } from "../wallet/node-key.ts";
import { webSocketDialer } from "../worker/dialer.ts";
import { joinTarget } from "../worker/join-target.ts";
import type { Context } from "./program/context.ts";
import { openOutboundTo } from "./program/outbound-to.ts";

export interface GatewayToCheck {
	readonly gateway: string;
	readonly ca: string | undefined;
	readonly insecure: boolean;
	/** Seconds. */
	readonly idle: number;
}

/** What `doctor --gateway` tries, over the way that `join` would take. Throws `usage`, and what opening proxy and trust throws. */
export async function openGatewayChecks(
	{ clock, random, home, host }: Context,
	{ gateway, ca, insecure, idle }: GatewayToCheck,
): Promise<{ checks: (Check | Check[])[]; close(): Promise<void> }> {
	const { url } = joinTarget(gateway.replace(/^http/, "ws"), insecure);
	const outbound = await openOutboundTo(url, host.env, ca);
	const parts = { url, outbound, clock };
	const identity = await loadNodeKey(home);
	const dialling = { url, identity, clock, random, insecure, outbound };
	const path = pathCheck({ dial: webSocketDialer(dialling), identity, clock, random });
	const silent = webSocketDialer({ ...dialling, path: "/v1/idle" });
	return {
		// The last two mostly wait.
		checks: [
			...[proxyCheck(parts), tlsCheck(parts), gatewayCheck(parts)],
			[path, idleCheck({ dial: silent, clock, idleMs: idleTimes(idle) })],
		],
		close: () => outbound.close(),
	};
}
