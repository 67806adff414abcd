import { defineCommand } from "../program/command.ts";
import { value } from "../program/options.ts";
import { path } from "../program/readers.ts";
import { isEncryptedKey, readKeyInput } from "./key-input.ts";
import { passphraseFile, readPassphrase } from "./passphrase.ts";

export const walletImportCommand = defineCommand({
	path: "wallet import",
	section: "wallet",
	summary: "make a key from elsewhere this home's wallet: PEM, Solana key file or 12 to 24 words",
	operands: [{ name: "<file>", about: "what holds the key; - reads it from stdin" }],
	options: {
		passphraseFile,
		keyPassphraseFile: value(
			"--key-passphrase-file <file>",
			"the passphrase that opens an encrypted PEM, where it is another",
			path,
		),
	},
	example: "kvasir wallet import id.json --passphrase-file passphrase.txt",
	async run(context, { passphraseFile: file, keyPassphraseFile }, [source]) {
		const { importWallet, walletPath } = await import("../../wallet/wallet-key.ts");
		const { home, random } = context;
		const text = await readKeyInput(context, source!);
		const own = keyPassphraseFile ?? file;
		const textPassphrase = isEncryptedKey(text) ? await readPassphrase(context, own, "open") : "";
		const passphrase = await readPassphrase(context, file, "choose");
		const { address, form } = await importWallet({ home, passphrase, random, text, textPassphrase });
		return { data: { address, form, path: walletPath(home) } };
	},
	render: ({ address, path: kept }) => `${address}\nKept encrypted in ${kept}, and opened again from there`,
});
