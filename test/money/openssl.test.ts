import { execFileSync, spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { claimText } from "../../src/protocol/claim-text.ts";
import { keyNamed, receiptChain, submissionOf, testSession } from "../support/receipts.ts";
import { temporaryHome } from "../support/temporary-home.ts";

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
/** RFC 8410: what makes SPKI of 32 bytes. */
const spki = Buffer.from("302a300506032b6570032100", "hex");

/** Whether openssl finds `signature` to be `key`'s over `text`. */
async function opensslVerifies(key: Uint8Array, text: Uint8Array, signature: Uint8Array): Promise<boolean> {
	const home = await temporaryHome();
	const [keyFile, textFile, signatureFile] = ["key", "text", "signature"].map((name) => join(home, name));
	await writeFile(keyFile!, Buffer.concat([spki, key]));
	await writeFile(textFile!, text);
	await writeFile(signatureFile!, signature);
	const args = ["pkeyutl", "-verify", "-pubin", "-inkey", keyFile!, "-keyform", "DER", "-rawin", "-in", textFile!];
	return spawnSync("openssl", [...args, "-sigfile", signatureFile!]).status === 0;
}

/** SHA-256 by openssl. */
function opensslDigest(text: Uint8Array): Buffer {
	return execFileSync("openssl", ["dgst", "-sha256", "-binary"], { input: text });
}

describe.runIf(hasOpenssl)("another implementation (openssl) agrees that", () => {
	const s = testSession("00".repeat(16));
	const [receipt] = receiptChain(s, [104]);
	const { body, signature, answer } = submissionOf(s, receipt!);

	test("a receipt is signed by the backbone and countersigned by the worker over its bytes", async () => {
		const digest = opensslDigest(body);
		const receiptText = Buffer.concat([Buffer.from("kvasir/1 receipt"), digest]);
		const countersignText = Buffer.concat([Buffer.from("kvasir/1 countersign"), digest]);
		if (answer === null || !("signature" in answer)) throw new Error("not countersigned");
		expect(await opensslVerifies(s.backbone.publicKey, receiptText, signature)).toBe(true);
		expect(await opensslVerifies(s.worker.publicKey, countersignText, answer.signature)).toBe(true);
		expect(await opensslVerifies(s.worker.publicKey, receiptText, signature)).toBe(false);
		expect(await opensslVerifies(s.backbone.publicKey, countersignText, signature)).toBe(false);
		const changed = Uint8Array.from(body);
		changed[changed.length - 1]! ^= 1;
		const other = Buffer.concat([Buffer.from("kvasir/1 receipt"), opensslDigest(changed)]);
		expect(await opensslVerifies(s.backbone.publicKey, other, signature)).toBe(false);
	});

	test("a claim is signed by the wallet over ledger, wallet, number, amount and address", async () => {
		const wallet = keyNamed("wallet");
		const claim = {
			ledgerId: new Uint8Array(16).fill(7),
			wallet: wallet.publicKey,
			number: 3,
			nano: 8_945_664n,
			address: keyNamed("exchange").publicKey,
		};
		const signed = wallet.sign(claimText(claim));
		const number = Buffer.alloc(8);
		number.writeBigUInt64LE(3n);
		const nano = Buffer.alloc(8);
		nano.writeBigUInt64LE(8_945_664n);
		const text = Buffer.concat([
			...[Buffer.from("kvasir/1 claim"), claim.ledgerId, claim.wallet, number, nano, claim.address],
		]);
		expect(await opensslVerifies(wallet.publicKey, text, signed)).toBe(true);
		expect(await opensslVerifies(wallet.publicKey, claimText({ ...claim, nano: 9n }), signed)).toBe(false);
	});
});
