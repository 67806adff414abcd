import { formatTable } from "../../ui/table.ts";
import { defineCommand } from "../program/command.ts";
import { admissionOptions, withAdmission } from "./admission-at.ts";

export const gatewayInviteListCommand = defineCommand({
	path: "gateway invite list",
	section: "gateway",
	summary: "invites and what became of them",
	options: admissionOptions,
	example: "kvasir gateway invite list",
	async run(context, options) {
		return { data: { invites: await withAdmission(context, options, (store) => store.listInvites()) } };
	},
	render: ({ invites }) =>
		formatTable(
			["id", "state", "expires", "used by", "note"],
			invites.map(({ id, state, expiresAtMs, usedBy, note }) => [
				id,
				state,
				new Date(expiresAtMs).toISOString(),
				usedBy ?? "",
				note,
			]),
		),
});
