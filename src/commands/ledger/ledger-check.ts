import { exitCodes } from "../../errors.ts";
import type { HubFigures, LedgerCheck } from "../../ledger/check.ts";
import type { Cursor } from "../../ledger/gateway-credit.ts";
import { formatTable } from "../../ui/table.ts";
import { exactKvrText } from "../../wallet/amounts.ts";
import { defineCommand } from "../program/command.ts";
import type { Context } from "../program/context.ts";
import { gatewayDb, hubDb, hubLocation, withGatewayStore } from "./ledger-stores.ts";

export const ledgerCheckCommand = defineCommand({
	path: "ledger check",
	section: "ledger",
	summary: "receipts x rate = not yet polled + pending + claimed + paid + remainder, per wallet and in all",
	options: { gatewayDb, hubDb },
	example: "kvasir ledger check --hub-db hub.db --gateway-db gateway.db",
	async run(context, options) {
		const { checkLedgers } = await import("../../ledger/check.ts");
		const check = await withGatewayStore(context.home, options.gatewayDb, async (store) => {
			const location = hubLocation(context.home, options.hubDb);
			// The hub is read after the gateway: what is posted between the two is not yet polled.
			const gateway = await store.check();
			const hub = location === null ? null : await hubFigures(context, location, gateway.cursor);
			return { ...checkView(checkLedgers(gateway, hub)), hub: hub !== null, cursor: gateway.cursor.after };
		});
		return { data: check, exitCode: check.balanced ? 0 : exitCodes.ledger };
	},
	render({ balanced, hub, wallets, all, differences }) {
		const head = ["wallet", "earned", "not polled", "pending", "claimed", "paid", "remainder"];
		const cells = (line: Amounts) => [
			...[line.earned, line.notPolled, line.pending, line.claimed, line.paid, line.remainder],
		];
		const rows = [...wallets.map((line) => [line.wallet, ...cells(line)]), ["all", ...cells(all)]];
		const verdict = balanced ? "Everything fits" : differences.join("\n");
		const without = hub ? "" : "\nWithout the hub's ledger (--hub-db): only what the gateway credited was checked";
		return `${formatTable(head, rows)}\n\n${verdict}${without}`;
	},
});

async function hubFigures({ clock }: Context, location: string, cursor: Cursor): Promise<HubFigures> {
	const [{ openHubLedger }, { readHubFigures }] = await Promise.all([
		import("../../ledger/hub-ledger.ts"),
		import("../../ledger/check.ts"),
	]);
	const hub = await openHubLedger(location, { clock, mustExist: true });
	try {
		return await readHubFigures(hub, cursor);
	} finally {
		await hub.close();
	}
}

type Amounts = Readonly<Record<Exclude<keyof LedgerCheck["all"], "wallet">, string>>;

/** Amounts in KVR to the millionth of a nano (15 decimals), as strings. */
function checkView({ ok, wallets, all, differences }: LedgerCheck) {
	const amounts = (line: LedgerCheck["all"]): Amounts => ({
		earned: exactKvrText(line.earned),
		notPolled: exactKvrText(line.notPolled),
		pending: exactKvrText(line.pending),
		claimed: exactKvrText(line.claimed),
		paid: exactKvrText(line.paid),
		remainder: exactKvrText(line.remainder),
		difference: exactKvrText(line.difference),
	});
	const lines = wallets.map((line) => ({ wallet: line.wallet, ...amounts(line) }));
	return { balanced: ok, wallets: lines, all: amounts(all), differences };
}
