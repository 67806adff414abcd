import { formatFacts } from "../../ui/table.ts";
import { defineCommand } from "../program/command.ts";
import { value } from "../program/options.ts";
import { count, text } from "../program/readers.ts";
import { admissionOptions, withAdmission } from "./admission-at.ts";

const hourMs = 3_600_000;

export const gatewayInviteCreateCommand = defineCommand({
	path: "gateway invite create",
	section: "gateway",
	summary: "a single-use invite for one new worker key",
	options: {
		...admissionOptions,
		validHours: value("--valid-hours <n>", "how long it may be used", count(1, 366 * 24), 72),
		note: value("--note <text>", "whom it is for", text, ""),
	},
	example: 'kvasir gateway invite create --note "Ada\'s workstation"',
	async run(context, { validHours, note, ...at }) {
		const invite = await withAdmission(context, at, (store) =>
			store.createInvite({ validMs: validHours * hourMs, note }),
		);
		return { data: invite };
	},
	render: ({ code, id, expiresAtMs }) =>
		formatFacts([
			["code", `${code} (shown here only; the worker joins with it in a file: --invite-file FILE)`],
			["id", id],
			["expires", new Date(expiresAtMs).toISOString()],
		]),
});
