import { readAuthorities } from "../../io/authorities.ts";
import { type Outbound, openOutbound } from "../../io/outbound.ts";
import type { Host } from "./host.ts";

/** How a gateway is reached: proxy by the environment, trust by the distribution and `--ca`. */
export async function openOutboundTo(url: string, env: Host["env"], ca: string | undefined): Promise<Outbound> {
	const secure = /^(wss|https):/.test(url);
	return openOutbound(new URL(url), { env, ...(secure && { authorities: await readAuthorities({ env, file: ca }) }) });
}
