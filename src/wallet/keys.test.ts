import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { addressOf } from "../io/base58.ts";
import { verifySignature } from "../io/crypto.ts";
import { systemRandom } from "../io/random.ts";
import { derive } from "./mnemonic.ts";
import { loadNodeKey, nodeKeyPath } from "./node-key.ts";
import {
	createWallet,
	exportWallet,
	importWallet,
	unlockWallet,
	verifyBackup,
	walletAddress,
	walletPath,
} from "./wallet-key.ts";

const passphrase = "correct horse battery staple";
const random = systemRandom;
const abandon = `${"abandon ".repeat(11)}about`;
const hasOpenssl = ["/usr/bin/openssl", "/usr/local/bin/openssl", "/opt/homebrew/bin/openssl"].some(existsSync);
const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "pipe" });
const posix = process.platform !== "win32";

describe("loadNodeKey()", () => {
	it("makes a key once, 0600, and finds it again", async () => {
		const home = join(await temporaryHome(), "new", "home");
		const [first, racing] = await Promise.all([loadNodeKey(home), loadNodeKey(home)]);
		expect(racing.publicKey).toEqual(first.publicKey);
		expect((await loadNodeKey(home)).publicKey).toEqual(first.publicKey);
		if (posix) expect((await stat(nodeKeyPath(home))).mode & 0o777).toBe(0o600);
		expect(await readdir(home)).toEqual(["node.key"]);
		expect(verifySignature(first.publicKey, Buffer.from("text"), first.sign(Buffer.from("text")))).toBe(true);
	});

	it.runIf(posix)("refuses a key that others can read, saying what to do", async () => {
		const home = await temporaryHome();
		await loadNodeKey(home);
		await chmod(nodeKeyPath(home), 0o640);
		await expect(loadNodeKey(home)).rejects.toMatchObject({
			code: "bad_key",
			hint: expect.stringContaining("chmod 600"),
		});
	});

	it("refuses a damaged file without quoting it, and does not replace it", async () => {
		const home = await temporaryHome();
		await writeFile(nodeKeyPath(home), "-----BEGIN PRIVATE KEY-----\nSECRETSECRET\n", { mode: 0o600 });
		const error = await loadNodeKey(home).catch((thrown: Error) => thrown);
		expect(error).toMatchObject({ code: "bad_key" });
		expect(JSON.stringify([String(error), (error as Error).cause ?? null])).not.toContain("SECRETSECRET");
		expect(await readFile(nodeKeyPath(home), "utf8")).toContain("SECRETSECRET");
	});
});

describe("createWallet()", () => {
	it("makes a wallet whose address needs no passphrase and whose key does", async () => {
		const home = await temporaryHome();
		const { address, mnemonic } = await createWallet({ home, passphrase, random, mnemonic: false });
		expect(mnemonic).toBeNull();
		expect(await walletAddress(home)).toBe(address);
		expect(addressOf((await unlockWallet(home, passphrase)).publicKey)).toBe(address);
		if (posix) expect((await stat(walletPath(home))).mode & 0o777).toBe(0o600);
		await expect(createWallet({ home, passphrase, random, mnemonic: false })).rejects.toMatchObject({
			code: "payment",
		});
		expect(await walletAddress(home)).toBe(address);
	});

	it("never tells the passphrase or the key when it does not open", async () => {
		const home = await temporaryHome();
		await createWallet({ home, passphrase, random, mnemonic: false });
		const solana = await exportWallet(home, passphrase, "solana");
		for (const wrong of ["wrong passphrase", "", `${passphrase} `]) {
			const error = (await unlockWallet(home, wrong).catch((thrown: Error) => thrown)) as Error & { facts: object };
			expect(error).toMatchObject({ code: "passphrase" });
			const told = JSON.stringify([error.message, error.stack, error.facts, error.cause ?? null]);
			expect(told).not.toContain(passphrase);
			if (wrong !== "") expect(told).not.toContain(wrong);
			expect(told).not.toContain(solana.slice(1, 40));
		}
		await expect(
			createWallet({ home: join(home, "b"), passphrase: "short", random, mnemonic: false }),
		).rejects.toMatchObject({ code: "passphrase" });
		expect(await walletAddress(join(home, "b"))).toBeNull();
	});

	it("gives words that restore the same address elsewhere", async () => {
		const [home, other] = [await temporaryHome(), await temporaryHome()];
		const { address, mnemonic } = await createWallet({ home, passphrase, random, mnemonic: true });
		expect(mnemonic!.split(" ")).toHaveLength(12);
		expect(await readFile(walletPath(home), "utf8")).not.toContain(mnemonic!.split(" ").slice(0, 2).join(" "));
		const imported = await importWallet({
			home: other,
			passphrase: "another one",
			random,
			text: ` ${mnemonic!.toUpperCase()} `,
			textPassphrase: "",
		});
		expect(imported).toEqual({ address, form: "mnemonic" });
	});

	it.runIf(hasOpenssl)("writes a file that openssl opens and whose signatures openssl verifies", async () => {
		const home = await temporaryHome();
		await createWallet({ home, passphrase, random, mnemonic: false });
		const file = (name: string) => join(home, name);
		await writeFile(file("pass"), passphrase);
		openssl("pkey", "-in", walletPath(home), "-passin", `file:${file("pass")}`, "-pubout", "-out", file("public.pem"));
		await writeFile(file("text"), "a claim");
		await writeFile(file("signature"), (await unlockWallet(home, passphrase)).sign(Buffer.from("a claim")));
		const verify = ["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", file("public.pem"), "-in", file("text")];
		expect(openssl(...verify, "-sigfile", file("signature")).toString()).toContain("Verified Successfully");
	});
});

describe("importWallet()", () => {
	it("knows the Solana address of the BIP-39 test sentence", async () => {
		const home = await temporaryHome();
		const { address } = await importWallet({ home, passphrase, random, text: abandon, textPassphrase: "" });
		expect(address).toBe("HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk");
	});

	it("derives the SLIP-10 test vector", () => {
		const seed = Buffer.from("000102030405060708090a0b0c0d0e0f", "hex");
		const key = derive(seed, [0, 1, 2, 2, 1_000_000_000]);
		expect(Buffer.from(key).toString("hex")).toBe("8f94d394a8e8fd6b1bc2f3f49f5c47e385281d5c17e65324b0f62483e37e8793");
	});

	it("takes back what exportWallet() gave, in each form", async () => {
		const home = await temporaryHome();
		const { address } = await createWallet({ home, passphrase, random, mnemonic: false });
		for (const form of ["pem", "solana"] as const) {
			const text = await exportWallet(home, passphrase, form);
			const textPassphrase = form === "pem" ? passphrase : "";
			expect(
				await importWallet({ home: join(home, form), passphrase: "another one", random, text, textPassphrase }),
			).toEqual({ address, form });
			expect(await verifyBackup(home, { text, passphrase: textPassphrase })).toMatchObject({
				matches: true,
				address,
				form,
			});
		}
		expect(await verifyBackup(home, { text: abandon, passphrase: "" })).toMatchObject({ matches: false, address });
	});

	it("refuses what is no key, quoting nothing of it", async () => {
		const home = await temporaryHome();
		const foreign = JSON.parse(await exportOf(home)) as number[];
		const mixed = JSON.stringify([...foreign.slice(0, 32), ...Array.from({ length: 32 }, () => 7)]);
		for (const text of [
			mixed,
			"[1,2,3]",
			"[1,2,",
			`${abandon} about`,
			abandon.replace("about", "zebra"),
			"-----BEGIN RSA PRIVATE KEY-----",
			"",
			"hunter2",
		]) {
			const error = (await importWallet({ home: join(home, "x"), passphrase, random, text, textPassphrase: "" }).catch(
				(e: Error) => e,
			)) as Error;
			expect(error).toMatchObject({ code: "bad_key" });
			for (const word of ["zebra", "hunter2", String(foreign.slice(0, 4))])
				expect(`${error.message} ${error.cause}`).not.toContain(word);
		}
		expect(await walletAddress(join(home, "x"))).toBeNull();
	});

	async function exportOf(home: string): Promise<string> {
		await createWallet({ home, passphrase, random, mnemonic: false });
		return exportWallet(home, passphrase, "solana");
	}
});

describe("the wallet file's versions", () => {
	it.runIf(hasOpenssl)("version 0, a bare PEM as openssl writes it, is upgraded when it is opened", async () => {
		const home = await temporaryHome();
		await writeFile(join(home, "pass"), passphrase);
		openssl(
			"genpkey",
			"-algorithm",
			"ed25519",
			"-aes256",
			"-pass",
			`file:${join(home, "pass")}`,
			"-out",
			walletPath(home),
		);
		await chmod(walletPath(home), 0o600);
		await expect(walletAddress(home)).rejects.toMatchObject({ code: "bad_file" });
		const key = await unlockWallet(home, passphrase);
		expect(await walletAddress(home)).toBe(addressOf(key.publicKey));
		expect((await unlockWallet(home, passphrase)).publicKey).toEqual(key.publicKey);
	});

	it.runIf(hasOpenssl)("a key that is not encrypted is refused, with what to do, and left as it is", async () => {
		const home = await temporaryHome();
		openssl("genpkey", "-algorithm", "ed25519", "-out", walletPath(home));
		await chmod(walletPath(home), 0o600);
		const before = await readFile(walletPath(home), "utf8");
		for (const use of [() => walletAddress(home), () => unlockWallet(home, passphrase)]) {
			await expect(use()).rejects.toMatchObject({ code: "bad_file", hint: expect.stringContaining("wallet import") });
		}
		expect(await readFile(walletPath(home), "utf8")).toBe(before);
	});

	it("version 1, as the first release wrote it, opens", async () => {
		const home = await temporaryHome();
		await writeFile(walletPath(home), await readFile(new URL("./wallet-v1.test.pem", import.meta.url)), {
			mode: 0o600,
		});
		expect(await walletAddress(home)).toBe("HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk");
		const key = await unlockWallet(home, passphrase);
		expect(addressOf(key.publicKey)).toBe("HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk");
	});

	it("a newer version, or an address that is not the key's, is refused", async () => {
		const home = await temporaryHome();
		const { address } = await createWallet({ home, passphrase, random, mnemonic: false });
		const text = await readFile(walletPath(home), "utf8");
		await writeFile(walletPath(home), text.replace("kvasir-wallet: 1", "kvasir-wallet: 2"), { mode: 0o600 });
		await expect(walletAddress(home)).rejects.toMatchObject({ code: "version" });
		await writeFile(walletPath(home), text.replace(address, "HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk"), {
			mode: 0o600,
		});
		await expect(unlockWallet(home, passphrase)).rejects.toMatchObject({ code: "bad_file" });
	});
});
