import { exitCodes } from "../../errors.ts";
import type { HubFigures, LedgerCheck } from "../../ledger/check.ts";
import type { Cursor } from "../../ledger/gateway-credit.ts";
import { formatTable } from "../../ui/table.ts";
import { exactKvrText } from "../../wallet/amounts.ts";
import { defineCommand } from "../program/command.ts";
import type { Context } from "../program/context.ts";
import { gatewayDb, gatewayIsElsewhere, hubDb, hubLocation, withGatewayStore } from "./ledger-stores.ts";

export const ledgerCheckCommand = defineCommand({
	path: "ledger check",
	section: "ledger",
	summary: "receipts x rate = not yet polled + pending + claimed + paid + remainder, per wallet and in all",
	options: { gatewayDb, hubDb },
	example: "kvasir ledger check --hub-db hub.db --gateway-db gateway.db",
	async run(context, options) {
		const { checkLedgers, noGateway } = await import("../../ledger/check.ts");
		const location = hubLocation(context.home, options.hubDb);
		const alone = location !== null && gatewayIsElsewhere(context.home, options.gatewayDb);
		// The hub is read after the gateway: what is posted between the two is not yet polled.
		const gateway = alone
			? noGateway
			: await withGatewayStore(context.home, options.gatewayDb, (store) => store.check());
		const hub = location === null ? null : await hubFigures(context, location, gateway.cursor);
		const check = checkView(checkLedgers(gateway, hub));
		const looked = { hub: hub !== null, gateway: !alone, cursor: gateway.cursor.after };
		const data = { ...check, ...looked, entries: hub?.head ?? null, conflicts: hub?.conflicts ?? null };
		return { data, exitCode: check.balanced ? 0 : exitCodes.ledger };
	},
	render({ balanced, hub, gateway, wallets, all, differences, entries, conflicts }) {
		const columns = ["wallet", "earned", "not polled", "pending", "claimed", "paid", "remainder"];
		const head = gateway ? columns : columns.slice(0, 2);
		const cells = (line: Amounts) =>
			[line.earned, line.notPolled, line.pending, line.claimed, line.paid, line.remainder].slice(0, head.length - 1);
		const rows = [...wallets.map((line) => [line.wallet, ...cells(line)]), ["all", ...cells(all)]];
		const verdict = balanced ? "Everything fits" : differences.join("\n");
		const seen = hub ? [`The hub's ${entries} entries: chain, numbers, signatures; conflicts kept: ${conflicts}`] : [];
		if (!hub) seen.push("Without the hub's ledger (--hub-db): only what the gateway credited was checked");
		if (!gateway) seen.push("Without the gateway's store (--gateway-db): what it credited and paid was not looked at");
		return [formatTable(head, rows), "", verdict, ...seen].join("\n");
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
