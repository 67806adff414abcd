import { exitCodes } from "../../errors.ts";
import { defineCommand } from "../program/command.ts";
import { isEncryptedKey, readKeyInput } from "./key-input.ts";
import { passphraseFile, readPassphrase } from "./passphrase.ts";

export const walletVerifyBackupCommand = defineCommand({
	path: "wallet verify-backup",
	section: "wallet",
	summary: "does this file, or do these words, restore this home's wallet?",
	operands: [{ name: "<file>", about: "PEM, Solana key file or words; - reads them from stdin" }],
	options: { passphraseFile },
	example: "kvasir wallet verify-backup backup.pem",
	async run(context, { passphraseFile: file }, [source]) {
		const { verifyBackup } = await import("../../wallet/wallet-key.ts");
		const text = await readKeyInput(context, source!);
		const passphrase = isEncryptedKey(text) ? await readPassphrase(context, file, "open") : "";
		const data = await verifyBackup(context.home, { text, passphrase });
		return { data, exitCode: data.matches ? 0 : exitCodes.payment };
	},
	render: ({ matches, address, backupAddress }) =>
		matches ? `It restores ${address}` : `It restores ${backupAddress}, not this wallet, ${address}`,
});
