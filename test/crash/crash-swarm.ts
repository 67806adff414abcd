import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { addressOf } from "../../src/io/base58.ts";
import { systemClock } from "../../src/io/clock.ts";
import type { KeyPair } from "../../src/io/crypto.ts";
import type { Failpoint } from "../../src/io/failpoint.ts";
import { systemRandom } from "../../src/io/random.ts";
import { checkLedgers, readHubFigures } from "../../src/ledger/check.ts";
import { type GatewayStore, openGatewayStore } from "../../src/ledger/gateway-store.ts";
import { type HubStore, openHubStore } from "../../src/ledger/hub-store.ts";
import { decodeRecord } from "../../src/ledger/journal-record.ts";
import { type Child, startChild } from "../../src/swarm/child.ts";
import { gatewayClient } from "../../src/wallet/gateway-client.ts";
import { readLocalReceipts } from "../../src/wallet/local-receipts.ts";
import { loadNodeKey } from "../../src/wallet/node-key.ts";
import { reconcile } from "../../src/wallet/reconcile.ts";
import { freePort } from "../support/free-port.ts";
import { cleanEnv, cliPath } from "../support/run-cli.ts";
import { until } from "../support/until.ts";

const roles = ["hub", "gateway", "backbone", "worker"] as const;
type Role = (typeof roles)[number];

/** Served bytes of a pair of the driver's model: hidden 16. */
const pairBytes = 64n;
const deadlineMs = 60_000;

/** What the journals of a backbone say was accepted, and what both ledgers say of it. */
export interface Settlement {
	readonly pairs: bigint;
	readonly nano: bigint;
}

/** Locations of the two stores. */
interface Databases {
	readonly hub: string;
	readonly gateway: string;
}

interface Keys {
	readonly backbone: KeyPair;
	readonly worker: KeyPair;
}

/** Gateway, hub, a backbone and a worker without a model, each in a process that can be killed at any point and started again. */
export class CrashSwarm implements AsyncDisposable {
	readonly #home: string;
	readonly #databases: Databases;
	readonly #ports: readonly number[];
	readonly #keys: Keys;
	readonly #running = new Map<Role, Child>();
	#stores: { readonly hub: HubStore; readonly gateway: GatewayStore } | null = null;
	#claimed = 0n;

	private constructor(home: string, databases: Databases, ports: readonly number[], keys: Keys) {
		this.#home = home;
		this.#databases = databases;
		this.#ports = ports;
		this.#keys = keys;
	}

	/** Starts everything in `home`, with the ledgers where `databases` says. */
	static async start(home: string, databases: Databases): Promise<CrashSwarm> {
		const keys = {
			backbone: await loadNodeKey(join(home, "backbone")),
			worker: await loadNodeKey(join(home, "worker")),
		};
		const ports = [await freePort(), await freePort(), await freePort()];
		const swarm = new CrashSwarm(home, databases, ports, keys);
		try {
			for (const role of roles) await swarm.#start(role);
			const parts = { clock: systemClock, random: systemRandom };
			swarm.#stores = {
				hub: await openHubStore(databases.hub, parts),
				gateway: await openGatewayStore(databases.gateway, parts),
			};
		} catch (error) {
			await swarm[Symbol.asyncDispose]();
			throw error;
		}
		return swarm;
	}

	/** Has one process end at a point, and starts it again. */
	async crashAt(point: Failpoint): Promise<void> {
		const role = point.split(".")[0] as Role;
		await this.#progress();
		const armed = join(this.#home, `${role}-failpoint`);
		await writeFile(`${armed}.new`, point);
		await rename(`${armed}.new`, armed);
		// What only happens when a link ends or begins, and what only happens when somebody claims.
		if (/retire|relays/.test(point)) await this.kill("worker");
		const ended = this.#running.get(role)!.ended;
		let over = false;
		void ended.then(() => {
			over = true;
		});
		await until(
			async () => {
				if (point.startsWith("gateway.claim") && !over) await this.#claim().catch(() => {});
				return over;
			},
			`${role} to end at ${point}`,
			deadlineMs,
		);
		await this.#start(role);
	}

	/** Waits until work is accepted: the worker is linked, and there is something to lose. */
	async #progress(): Promise<void> {
		const before = await this.#acceptedPairs();
		await until(async () => (await this.#acceptedPairs()) > before, "work to be accepted", deadlineMs);
	}

	/** SIGKILL, wherever it is, and started again. */
	async kill(role: Role): Promise<void> {
		await this.#running.get(role)!.kill();
		await this.#start(role);
	}

	/** Lets everything come to rest and compares: accepted pairs in the journals = receipts = credits, to the nano. */
	async settle(): Promise<Settlement> {
		const { hub, gateway } = this.#stores!;
		this.#signalBackbone("SIGUSR2");
		let found = "";
		try {
			await until(
				async () => {
					const pairs = await this.#acceptedPairs();
					const received = (await hub.totals(0, null)).reduce((sum, { bytes }) => sum + bytes, 0n);
					const cursor = await gateway.cursor();
					const credited = (await gateway.balance(this.#wallet)).servedBytes;
					found = `${pairs} pairs accepted, ${received} bytes received, ${credited} credited, cursor ${cursor.after}`;
					return pairs * pairBytes === received && received === credited && (await this.#isIdle());
				},
				"the ledgers to agree",
				deadlineMs,
			);
		} catch (error) {
			throw new Error(`${(error as Error).message}: ${found}`);
		}
		const pairs = await this.#acceptedPairs();
		const check = await gateway.check();
		expect(checkLedgers(check, await readHubFigures(hub, check.cursor)).differences).toEqual([]);
		const { pending, claimed, paid } = await gateway.balance(this.#wallet);
		expect(pending + claimed + paid).toBe(pairs * pairBytes * 7n);
		expect(claimed).toBe(this.#claimed);
		await this.#reconcileWorker();
		this.#signalBackbone("SIGCONT");
		return { pairs, nano: pending + claimed + paid };
	}

	async [Symbol.asyncDispose](): Promise<void> {
		await this.#stores?.hub.close();
		await this.#stores?.gateway.close();
		for (const role of [...roles].reverse()) await this.#running.get(role)?.kill();
	}

	get #wallet(): string {
		return addressOf(this.#keys.worker.publicKey);
	}

	#signalBackbone(signal: NodeJS.Signals): void {
		process.kill(this.#running.get("backbone")!.pid, signal);
	}

	/** The same claim until it is answered counts once. */
	async #claim(): Promise<void> {
		const parts = { gateway: `http://127.0.0.1:${this.#ports[2]}`, clock: systemClock, random: systemRandom };
		const before = this.#claimed;
		try {
			await gatewayClient(parts).claim(this.#keys.worker, { nano: 1n, address: this.#wallet });
		} finally {
			// Whether it counted is the ledger's to say: the answer may be what was lost.
			this.#claimed = (await this.#stores!.gateway.balance(this.#wallet)).claimed;
			expect(this.#claimed - before).toBeLessThanOrEqual(1n);
		}
	}

	/** Every pair that any journal of this backbone says was accepted. */
	async #acceptedPairs(): Promise<bigint> {
		let pairs = 0n;
		const kept = join(this.#home, "backbone", "kept");
		const journals = join(this.#home, "backbone", "journals");
		const names = new Set([...(await readdir(kept)), ...(await readdir(journals))]);
		for (const name of names) {
			const bytes = await readFile(join(kept, name)).catch(() => readFile(join(journals, name)));
			for (let found = decodeRecord(bytes, 0); found !== null; found = decodeRecord(bytes, found.next)) {
				if (found.record.kind === "paid") pairs += BigInt(found.record.pairs);
			}
		}
		return pairs;
	}

	/** No receipt is on its way: each that was issued is acknowledged. */
	async #isIdle(): Promise<boolean> {
		const folder = join(this.#home, "backbone", "journals");
		for (const name of await readdir(folder)) {
			const open = new Set<number>();
			const bytes = await readFile(join(folder, name)).catch(() => Buffer.alloc(0));
			for (let found = decodeRecord(bytes, 0); found !== null; found = decodeRecord(bytes, found.next)) {
				if (found.record.kind === "receipt") open.add(found.record.number);
				if (found.record.kind === "acknowledged") open.delete(found.record.number);
			}
			if (open.size > 0) return false;
		}
		return true;
	}

	/** What the worker kept fits what was credited: a crash can cost it a copy, never a credit. */
	async #reconcileWorker(): Promise<void> {
		const lines = await this.#stores!.gateway.credits(this.#wallet, 0, 1000);
		const last = lines.at(-1)?.entry ?? 0;
		const credits = async function* (store: GatewayStore, wallet: string) {
			yield* lines;
			for (let after = last, page = lines; page.length === 1000; after = page.at(-1)!.entry) {
				page = await store.credits(wallet, after, 1000);
				yield* page;
			}
		};
		const gateway = { credits: credits(this.#stores!.gateway, this.#wallet), cursorLag: 0 };
		const { differences, balanced } = await reconcile(
			this.#wallet,
			readLocalReceipts(join(this.#home, "worker")),
			gateway,
		);
		expect(differences.filter(({ reason }) => reason !== "not_here")).toEqual([]);
		expect(balanced).toBe(true);
	}

	async #start(role: Role): Promise<void> {
		const home = join(this.#home, role);
		await mkdir(home, { recursive: true });
		const [relay, api, listen] = this.#ports;
		const secret = join(this.#home, "hub-secret");
		const script = { backbone: "./backbone.mjs", worker: "./worker.mjs" }[role as string];
		const args = {
			hub: [
				...["serve-hub", "--relay", `127.0.0.1:${relay}`, "--api", `127.0.0.1:${api}`, "--secret-file", secret],
				...["--backbone-key", addressOf(this.#keys.backbone.publicKey), "--db", this.#databases.hub, "--home", home],
			],
			gateway: [
				...["serve-gateway", "--listen", `127.0.0.1:${listen}`, "--plain", "--admin", "127.0.0.1:0"],
				...["--hub", `127.0.0.1:${relay}`, "--hub-api", `127.0.0.1:${api}`, "--hub-secret-file", secret],
				...["--admit-rate", "1000", "--db", this.#databases.gateway, "--home", home],
			],
			backbone: [String(relay), home],
			worker: [`ws://127.0.0.1:${listen}`, home],
		}[role];
		const child = await startChild(role, args, {
			execPath: process.execPath,
			cliPath: script === undefined ? cliPath : fileURLToPath(new URL(script, import.meta.url)),
			env: cleanEnv({ NODE_ENV: "test", KVASIR_TEST_FAILPOINTS: join(this.#home, `${role}-failpoint`) }),
			clock: systemClock,
		});
		this.#running.set(role, child);
	}
}
