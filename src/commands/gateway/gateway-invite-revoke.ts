import { defineCommand } from "../program/command.ts";
import { admissionOptions, withAdmission } from "./admission-at.ts";

export const gatewayInviteRevokeCommand = defineCommand({
	path: "gateway invite revoke",
	section: "gateway",
	summary: "take back an invite nobody used",
	operands: [{ name: "<id>", about: "as gateway invite list shows it" }],
	options: admissionOptions,
	example: "kvasir gateway invite revoke 1f2e3d4c5b",
	async run(context, options, [id]) {
		return { data: await withAdmission(context, options, (store) => store.revokeInvite(id!)) };
	},
	render: ({ id }) => `Invite ${id} is revoked`,
});
