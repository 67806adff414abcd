import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { base58 } from "@scure/base";
import { expect, it, onTestFinished } from "vitest";
import { addressOf } from "../../src/io/base58.ts";
import { loadNodeKey } from "../../src/wallet/node-key.ts";
import { resultOf, runCli, startCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { until } from "../support/until.ts";

const passphrase = "correct horse battery staple 4711";

/** Everything that any process of the test printed, and the words each was started with. */
const printed: string[] = [];

/** A long-running command; everything it prints is kept. */
async function serve(args: readonly string[]) {
	const child = startCli([...args, "--json", "--log-level", "debug"]);
	printed.push(args.join(" "));
	let stdout = "";
	child.stdout.setEncoding("utf8").on("data", (text: string) => {
		stdout += text;
		printed.push(text);
	});
	child.stderr.setEncoding("utf8").on("data", (text: string) => void printed.push(text));
	const listening = () => stdout.split("\n").find((line) => line.includes('"listening"'));
	await until(() => listening() !== undefined, `${args[0]} to listen: ${stdout}`, 60_000);
	return JSON.parse(listening()!) as Record<string, unknown>;
}

/** A command run to its end; what it prints is kept, unless it is there to show a secret once. */
async function run(args: readonly string[], options: { shows?: boolean; input?: string; code?: number } = {}) {
	const words = [...args, "--json", "--log-level", "debug"];
	const result = await runCli(words, {
		...(options.input === undefined ? {} : { input: options.input }),
		deadlineMs: 120_000,
	});
	printed.push(words.join(" "), result.stderr, ...(options.shows ? [] : [result.stdout]));
	expect({ args, code: result.code, out: options.code ? "" : result.code === 0 ? "" : result.stdout }).toEqual({
		args,
		code: options.code ?? 0,
		out: "",
	});
	return result.json().data;
}

it("work is paid, claimed, paid out and accounted for on the command line; no secret is printed, logged or an argument", async () => {
	const home = await temporaryHome();
	const [ann, hub, gateway, backbone] = ["ann", "hub", "gateway", "backbone"].map((name) => join(home, name)) as [
		string,
		string,
		string,
		string,
	];
	const passphraseFile = join(home, "passphrase");
	await writeFile(passphraseFile, `${passphrase}\n`, { mode: 0o600 });
	const wallet = (...words: string[]) => [...words, "--home", ann, "--passphrase-file", passphraseFile];
	const { address, mnemonic } = await run(wallet("wallet", "create", "--mnemonic"), { shows: true });
	const key = addressOf((await loadNodeKey(backbone)).publicKey);

	const secretFile = join(home, "hub-secret");
	const { relayPort, apiPort } = await serve([
		...["serve-hub", "--relay", "127.0.0.1:0", "--api", "127.0.0.1:0", "--secret-file", secretFile],
		...["--backbone-key", key, "--home", hub],
	]);
	const { port } = await serve([
		...["serve-gateway", "--listen", "127.0.0.1:0", "--plain", "--admin", "127.0.0.1:0", "--home", gateway],
		...["--hub", `127.0.0.1:${relayPort}`, "--hub-api", `127.0.0.1:${apiPort}`, "--hub-secret-file", secretFile],
	]);
	// Paid to the home's wallet, whose passphrase it does not know.
	await serve(["join", `ws://127.0.0.1:${port}`, "--model", "tiny", "--hold", "all:all", "--home", ann]);
	const words = [
		...[
			"backbone",
			"dispatch",
			"--hub",
			`127.0.0.1:${relayPort}`,
			"--home",
			backbone,
			"--prompt",
			"The capital of France is",
		],
		...["--tokens", "4", "--wait", "60", "--json", "--log-level", "debug"],
	];
	const dispatched = await resultOf(startCli(words), words, 120_000);
	printed.push(words.join(" "), dispatched.stdout, dispatched.stderr);
	expect(dispatched.code).toBe(0);

	await until(
		async () => (await run(["wallet", "balance", "--home", ann])).pending !== "0",
		"work to be credited",
		60_000,
	);
	const balance = await run(["wallet", "balance", "--home", ann]);
	expect(balance).toMatchObject({ address, source: "gateway", claimed: "0", paid: "0", cursorLag: 0 });
	expect(BigInt(balance.nano.pending)).toBe(BigInt(Math.round(Number(balance.units) * 1e6)) * 7n);
	const check = ["ledger", "check", "--home", gateway, "--hub-db", join(hub, "hub.db")];
	const checked = await run(check);
	expect(checked).toMatchObject({ balanced: true, hub: true, differences: [], all: { pending: balance.pending } });
	expect(await run(wallet("wallet", "reconcile"))).toMatchObject({ balanced: true, differences: [] });

	const exchange = addressOf((await loadNodeKey(join(home, "exchange"))).publicKey);
	const claim = await run(wallet("wallet", "claim", "--to", exchange));
	expect(claim).toMatchObject({ kvr: balance.pending, address: exchange, state: "claimed", number: 1 });
	const { payouts } = await run(["ledger", "export-payouts", "--home", gateway]);
	expect(payouts).toMatchObject([{ id: claim.id, kvr: balance.pending, address: exchange }]);
	const confirm = ["ledger", "confirm-payout", claim.id, "--reference", "transaction-1", "--home", gateway];
	expect(await run(confirm)).toMatchObject({ state: "paid", reference: "transaction-1" });
	expect(await run(confirm)).toMatchObject({ state: "paid" });
	await run(["ledger", "release-payout", claim.id, "--home", gateway], { code: 9 });
	expect(await run(["wallet", "balance", "--home", ann])).toMatchObject({
		pending: "0",
		claimed: "0",
		paid: balance.pending,
	});
	expect(await run(check)).toMatchObject({ balanced: true, all: { paid: balance.pending, pending: "0" } });
	const { lines } = await run(wallet("wallet", "history"));
	expect(lines.map(({ kind }: { kind: string }) => kind)).toEqual(
		expect.arrayContaining(["credit", "claimed", "paid"]),
	);
	await run(wallet("wallet", "claim"), { code: 9 });

	// Backups, and what goes wrong with them.
	const solana = join(home, "id.json");
	await run(wallet("wallet", "export", "--form", "solana", "--out", solana));
	const pem = join(home, "backup.pem");
	await run(wallet("wallet", "export", "--out", pem));
	for (const file of [solana, pem])
		expect(await run(wallet("wallet", "verify-backup", file))).toMatchObject({ matches: true });
	expect(await run(wallet("wallet", "verify-backup", "-"), { input: mnemonic })).toMatchObject({
		matches: true,
		form: "mnemonic",
	});
	const restored = ["--home", join(home, "restored"), "--passphrase-file", passphraseFile];
	expect(await run(["wallet", "import", "-", ...restored], { input: mnemonic })).toMatchObject({ address });
	await run(["wallet", "import", solana, ...restored], { code: 9 });
	await run(wallet("wallet", "export", "--form", "solana"), { code: 2 });
	const broken = join(home, "broken");
	await writeFile(broken, `${mnemonic} abandon`);
	await run(["wallet", "import", broken, "--home", join(home, "third"), "--passphrase-file", passphraseFile], {
		code: 5,
	});
	await writeFile(broken, (await readFile(solana, "utf8")).replace("[", "[1,"));
	await run(["wallet", "verify-backup", broken, "--home", ann, "--passphrase-file", passphraseFile], { code: 5 });
	const wrong = join(home, "wrong");
	await writeFile(wrong, "not the passphrase");
	await run(["wallet", "history", "--home", ann, "--passphrase-file", wrong], { code: 5 });

	const seed = Uint8Array.from(JSON.parse(await readFile(solana, "utf8")).slice(0, 32) as number[]);
	const nodeKeys = await Promise.all([ann, backbone].map((folder) => readFile(join(folder, "node.key"), "utf8")));
	const secrets = [
		...[passphrase, "not the passphrase", mnemonic, mnemonic.split(" ").slice(0, 3).join(" ")],
		...[Buffer.from(seed).toString("hex"), Buffer.from(seed).toString("base64").slice(0, 40), base58.encode(seed)],
		[...seed.subarray(0, 8)].join(","),
		(await readFile(secretFile, "utf8")).trim(),
		...nodeKeys.map((text) => text.split("\n")[1]!),
	];
	const all = printed.join("\n");
	expect(all.length).toBeGreaterThan(10_000);
	for (const secret of secrets) expect(all.includes(secret), `printed: ${secret.slice(0, 6)}...`).toBe(false);
	onTestFinished(() => void printed.splice(0));
});
