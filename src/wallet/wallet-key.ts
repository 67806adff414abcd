import type { KeyObject } from "node:crypto";
import { join } from "node:path";
import { KvasirError } from "../errors.ts";
import { addressOf, keyOf } from "../io/base58.ts";
import { type KeyPair, keyPairFromPrivateKey } from "../io/crypto.ts";
import { writePrivateFile } from "../io/files.ts";
import type { Random } from "../io/random.ts";
import { encryptPem, openPem } from "./encrypted-pem.ts";
import { createKeyFile, readKeyFile } from "./key-file.ts";
import { type KeyForm, keyOfSeed, publicKeyOf, readKeyText, solanaText } from "./key-text.ts";
import { newMnemonic, seedOfMnemonic } from "./mnemonic.ts";

// The wallet file is the key itself, encrypted PKCS#8 PEM, under a few lines of text that openssl skips:
//
//   kvasir-wallet: 1
//   address: <base58>
//   -----BEGIN ENCRYPTED PRIVATE KEY----- ...
//
// so that the address is known without the passphrase, and key and address cannot come apart.

const fileVersion = 1;

/** Where a home keeps its wallet. */
export function walletPath(home: string): string {
	return join(home, "wallet.pem");
}

export interface NewWallet {
	readonly address: string;
	/** The words to write down, shown once and stored nowhere; null without `mnemonic`. */
	readonly mnemonic: string | null;
}

interface Parts {
	readonly home: string;
	/** Encrypts the file; at least 8 characters. */
	readonly passphrase: string;
	readonly random: Random;
}

/** Makes the home's wallet. Throws `payment` when there is one, `passphrase` when it is too short. */
export async function createWallet(parts: Parts & { readonly mnemonic: boolean }): Promise<NewWallet> {
	const mnemonic = parts.mnemonic ? newMnemonic(parts.random) : null;
	const key = keyOfSeed(mnemonic === null ? parts.random.bytes(32) : seedOfMnemonic(mnemonic));
	return { address: await store(parts, key), mnemonic };
}

/**
 * Makes a key from elsewhere the home's wallet: PEM, Solana key file or mnemonic. The file is opened again before this returns.
 * Throws what reading the key throws, and `payment` when there is a wallet.
 */
export async function importWallet(
	parts: Parts & { readonly text: string; readonly textPassphrase: string },
): Promise<{ address: string; form: KeyForm }> {
	const { form, key } = readKeyText(parts.text, parts.textPassphrase);
	return { address: await store(parts, key), form };
}

/** The home's address, without its passphrase; null when it has no wallet. Throws `bad_file` or `version`. */
export async function walletAddress(home: string): Promise<string | null> {
	const text = await readKeyFile(walletPath(home));
	if (text === null) return null;
	const { address } = readHeader(home, text);
	if (address !== null) return address;
	throw new KvasirError("bad_file", `Cannot tell the address of ${walletPath(home)}: it is a bare key`, {
		hint: "Open it once with its passphrase: kvasir wallet history",
	});
}

/** The wallet's key. Throws `passphrase`, `payment` when there is none; upgrades a bare PEM to the present form. */
export async function unlockWallet(home: string, passphrase: string): Promise<KeyPair> {
	return keyPairFromPrivateKey(await openWallet(home, passphrase));
}

/** The wallet's key for use elsewhere: `pem` as it is stored (encrypted), `solana` as a key file (not encrypted). */
export async function exportWallet(home: string, passphrase: string, form: "pem" | "solana"): Promise<string> {
	const key = await openWallet(home, passphrase);
	if (form === "solana") return solanaText(key);
	const text = await requireWallet(home);
	return text.slice(text.indexOf("-----BEGIN"));
}

/** Whether a backup (PEM, key file or mnemonic) restores this home's wallet: both addresses. Throws what reading the backup throws. */
export async function verifyBackup(
	home: string,
	backup: { readonly text: string; readonly passphrase: string },
): Promise<{ matches: boolean; address: string; backupAddress: string; form: KeyForm }> {
	const address = await walletAddress(home);
	if (address === null) throw noWallet(home);
	const { form, key } = readKeyText(backup.text, backup.passphrase);
	const backupAddress = addressOf(publicKeyOf(key));
	return { matches: backupAddress === address, address, backupAddress, form };
}

async function store({ home, passphrase, random }: Parts, key: KeyObject): Promise<string> {
	if (passphrase.length < 8) {
		throw new KvasirError("passphrase", "Cannot protect the wallet: the passphrase has fewer than 8 characters");
	}
	const address = addressOf(publicKeyOf(key));
	const created = await createKeyFile(walletPath(home), fileText(address, encryptPem(key, passphrase, random)));
	if (!created) {
		throw new KvasirError("payment", `Cannot make a wallet: ${walletPath(home)} is one already`, {
			hint: "Back it up and move it away, or use another --home",
		});
	}
	const kept = await unlockWallet(home, passphrase);
	if (addressOf(kept.publicKey) !== address)
		throw new KvasirError("internal", "Cannot keep the wallet: it reads back differently");
	return address;
}

async function openWallet(home: string, passphrase: string): Promise<KeyObject> {
	const text = await requireWallet(home);
	const { address } = readHeader(home, text);
	const pem = text.slice(text.indexOf("-----BEGIN"));
	const key = openPem(pem, passphrase);
	const derived = addressOf(publicKeyOf(key));
	if (address === null) await writePrivateFile(walletPath(home), fileText(derived, pem));
	else if (address !== derived) {
		throw new KvasirError("bad_file", `Cannot use ${walletPath(home)}: it says ${address}, its key is ${derived}`, {
			hint: "Somebody changed the file; correct its address line",
		});
	}
	return key;
}

async function requireWallet(home: string): Promise<string> {
	const text = await readKeyFile(walletPath(home));
	if (text === null) throw noWallet(home);
	return text;
}

/** The lines above the PEM; a bare PEM, as openssl writes it, has none. */
function readHeader(home: string, text: string): { address: string | null } {
	const start = text.indexOf("-----BEGIN");
	if (start < 0) throw new KvasirError("bad_file", `Cannot read ${walletPath(home)}: no PEM in it`);
	if (!text.startsWith("-----BEGIN ENCRYPTED PRIVATE KEY-----", start)) {
		throw new KvasirError("bad_file", `Cannot use ${walletPath(home)}: the key in it is not encrypted`, {
			hint: "Move it away, then: kvasir wallet import FILE",
		});
	}
	if (start === 0) return { address: null };
	const fields = new Map(
		text
			.slice(0, start)
			.split("\n")
			.map((line) => line.split(": ", 2) as [string, string | undefined]),
	);
	const version = fields.get("kvasir-wallet");
	if (version !== String(fileVersion)) {
		throw new KvasirError(
			"version",
			`Cannot read ${walletPath(home)}: version ${version}, this Kvasir knows ${fileVersion}`,
		);
	}
	return { address: addressOf(keyOf(fields.get("address") ?? "")) };
}

function fileText(address: string, pem: string): string {
	return `kvasir-wallet: ${fileVersion}\naddress: ${address}\n${pem}`;
}

function noWallet(home: string): KvasirError {
	return new KvasirError("payment", `Cannot use the wallet: there is none in ${home}`, {
		hint: "kvasir wallet create, or kvasir wallet import",
	});
}
