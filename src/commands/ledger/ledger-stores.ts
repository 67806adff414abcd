import { existsSync } from "node:fs";
import { join } from "node:path";
import type { GatewayStore } from "../../ledger/gateway-store.ts";
import { named, value } from "../program/options.ts";
import { text } from "../program/readers.ts";

/** Where the gateway's store is, for every command that settles. */
export const gatewayDb = named(
	"KVASIR_GATEWAY_DB",
	value("--gateway-db <file|url>", "the gateway's store; else gateway.db in the home", text),
);

/** Where the hub's ledger is. */
export const hubDb = named(
	"KVASIR_HUB_DB",
	value("--hub-db <file|url>", "the hub's ledger; else hub.db in the home, where there is one", text),
);

/** The hub's ledger as it was named, or the home's; null: it is on another machine. */
export function hubLocation(home: string, named: string | undefined): string | null {
	const own = join(home, "hub.db");
	return named ?? (existsSync(own) ? own : null);
}

/** True where no gateway's store was named and the home has none: this is a hub's machine. */
export function gatewayIsElsewhere(home: string, named: string | undefined): boolean {
	return named === undefined && !existsSync(join(home, "gateway.db"));
}

/** Runs `work` on a gateway's store, which must exist. It may be in use by its gateway. */
export async function withGatewayStore<T>(
	home: string,
	location: string | undefined,
	work: (store: GatewayStore) => Promise<T>,
): Promise<T> {
	const { openGatewayLedger } = await import("../../ledger/gateway-ledger.ts");
	const store = await openGatewayLedger(location ?? join(home, "gateway.db"), { mustExist: true });
	try {
		return await work(store);
	} finally {
		await store.close();
	}
}
