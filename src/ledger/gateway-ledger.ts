import type { Location } from "./database.ts";
import type { GatewayStore, GatewayStoreOptions } from "./gateway-store.ts";
import { StoreThread } from "./store-calls.ts";

/** Opens (or creates) the gateway's store in a thread of its own: a file, `:memory:` or `postgres://...`. Throws `ledger`, `version` or `file_missing`. */
export async function openGatewayLedger(
	location: Location,
	options: Omit<GatewayStoreOptions, "clock"> = {},
): Promise<GatewayStore> {
	const { thread } = await StoreThread.open({ kind: "gateway", location, options });
	return {
		cursor: () => thread.call("cursor"),
		credit: (page) => thread.call("credit", page),
		balance: (address) => thread.call("balance", address),
		credits: (address, after, limit) => thread.call("credits", address, after, limit),
		payouts: (address) => thread.call("payouts", address),
		claim: (claim) => thread.call("claim", claim),
		exportPayouts: () => thread.call("exportPayouts"),
		confirmPayout: (id, reference) => thread.call("confirmPayout", id, reference),
		releasePayout: (id, reason) => thread.call("releasePayout", id, reason),
		check: () => thread.call("check"),
		close: () => thread.close(),
	};
}
