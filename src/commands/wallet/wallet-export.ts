import { KvasirError } from "../../errors.ts";
import { defineCommand, type Outcome } from "../program/command.ts";
import { value } from "../program/options.ts";
import { oneOf, path } from "../program/readers.ts";
import { passphraseFile, readPassphrase } from "./passphrase.ts";

interface WalletExport {
	readonly address: string;
	readonly form: "pem" | "solana";
	/** Where it was written; null: `text` holds it. */
	readonly path: string | null;
	readonly text: string | null;
}

export const walletExportCommand = defineCommand({
	path: "wallet export",
	section: "wallet-export",
	summary: "the wallet's key for use elsewhere: encrypted PEM, or a Solana key file",
	options: {
		passphraseFile,
		form: value(
			"--form <form>",
			"pem (encrypted, as openssl reads it) or solana (not encrypted)",
			oneOf("pem", "solana"),
			"pem",
		),
		out: value("--out <file>", "write it here, 0600; solana needs this, pem is printed without it", path),
	},
	example: "kvasir wallet export --form solana --out id.json",
	async run(context, { passphraseFile: file, form, out }): Promise<Outcome<WalletExport>> {
		if (form === "solana" && out === undefined) {
			throw new KvasirError("usage", "Cannot print a key that is not encrypted", { hint: "Name a file: --out FILE" });
		}
		const [{ exportWallet, walletAddress }, { createKeyFile }] = await Promise.all([
			import("../../wallet/wallet-key.ts"),
			import("../../wallet/key-file.ts"),
		]);
		const { home } = context;
		const passphrase = await readPassphrase(context, file, "open");
		const text = await exportWallet(home, passphrase, form);
		const address = (await walletAddress(home))!;
		if (out === undefined) return { data: { address, form, path: null, text } };
		if (await createKeyFile(out, text)) return { data: { address, form, path: out, text: null } };
		throw new KvasirError("bad_file", `Cannot write ${out}: it is there already`, { hint: "Nothing was overwritten" });
	},
	render: ({ address, form, path: kept, text }) =>
		text ?? `${address}\n${form === "solana" ? "Not encrypted" : "Encrypted under the wallet's passphrase"}: ${kept}`,
});
