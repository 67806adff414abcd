import { defineCommand } from "../program/command.ts";
import { toggle } from "../program/options.ts";
import { passphraseFile, readPassphrase } from "./passphrase.ts";

export const walletCreateCommand = defineCommand({
	path: "wallet create",
	section: "wallet",
	summary: "make a wallet key, encrypted, in the home",
	options: {
		passphraseFile,
		mnemonic: toggle("--mnemonic", "derive the key from 12 words and show them once (BIP-39, m/44'/501'/0'/0')"),
	},
	example: "kvasir wallet create --passphrase-file passphrase.txt",
	async run(context, { passphraseFile: file, mnemonic }) {
		const { createWallet, walletPath } = await import("../../wallet/wallet-key.ts");
		const passphrase = await readPassphrase(context, file, "choose");
		const wallet = await createWallet({ home: context.home, passphrase, random: context.random, mnemonic });
		const words = wallet.mnemonic === null ? {} : { mnemonic: wallet.mnemonic };
		return { data: { address: wallet.address, path: walletPath(context.home), ...words } };
	},
	render({ address, path, mnemonic }) {
		const words = mnemonic ? `\n\nWrite these words down, they are shown once:\n  ${mnemonic}` : "";
		return `${address}\nBack up ${path}: whoever loses it and its passphrase loses what is on it.${words}`;
	},
});
