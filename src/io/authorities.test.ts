import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { privateAuthority } from "../../test/support/private-authority.ts";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { readAuthorities } from "./authorities.ts";

const damaged = "-----BEGIN CERTIFICATE-----\nMIIBAAAA\n-----END CERTIFICATE-----\n";

it.each([
	["is not there", null, "file_missing"],
	["is no PEM", "MIIB\x00\x01", "bad_file"],
	["holds a key instead", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "bad_file"],
	["holds a damaged certificate", damaged, "bad_file"],
])("a --ca file that %s is refused, and not left out without a word", async (_, text, code) => {
	const file = join(await temporaryHome(), "ca.pem");
	if (text !== null) await writeFile(file, text);
	await expect(readAuthorities({ env: {}, file })).rejects.toMatchObject({
		code,
		message: expect.stringContaining(file),
	});
});

it("one damaged certificate among good ones is told, and so is a whole file taken", async () => {
	const folder = await temporaryHome();
	const { ca } = await privateAuthority(folder, ["gate.test"]);
	const file = join(folder, "mixed.pem");
	await writeFile(file, `# ours\n${ca}`);
	expect((await readAuthorities({ env: {}, file })).at(-1)).toContain(ca);
	await writeFile(file, `${ca}${damaged}`);
	await expect(readAuthorities({ env: {}, file })).rejects.toMatchObject({
		hint: expect.stringContaining("openssl x509"),
	});
});
