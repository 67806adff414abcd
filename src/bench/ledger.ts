import { join } from "node:path";
import { addressOf } from "../io/base58.ts";
import type { Clock } from "../io/clock.ts";
import { type KeyPair, keyPairFromSeed, sha256 } from "../io/crypto.ts";
import type { Random } from "../io/random.ts";
import { type EntryPage, genesisHash, pageJson, parsePage } from "../ledger/entry.ts";
import { openGatewayLedger } from "../ledger/gateway-ledger.ts";
import type { GatewayStore } from "../ledger/gateway-store.ts";
import { type HubLedger, openHubLedger } from "../ledger/hub-ledger.ts";
import { encodeReceipt, receiptHash } from "../ledger/receipt.ts";
import { countersignReceipt, signReceipt } from "../ledger/receipt-signatures.ts";
import type { ReceiptSubmission } from "../ledger/submission.ts";
import { bindPayout } from "../protocol/payout.ts";

export interface LedgerBenchOptions {
	/** Countersigned receipts in all. @default 8000 */
	readonly receipts?: number;
	/** Sessions they are of: each a worker and a wallet of its own. @default 100 */
	readonly sessions?: number;
	/** Receipts that backbones have on the way at once. @default 512 */
	readonly inFlight?: number;
	/** Where the two SQLite files are made, on the disk that is meant. */
	readonly folder: string;
	/** Milliseconds of CPU time this process has used, all threads. */
	readonly cpuMs: () => number;
	readonly clock: Clock;
	readonly random: Random;
	readonly signal?: AbortSignal;
}

/** One measured part. */
export interface LedgerBenchLine {
	readonly part: "hub stores" | "gateway credits" | "both at once";
	readonly receipts: number;
	readonly perSecond: number;
	/** Of all threads: what a receipt costs where other processes do not make it wait. */
	readonly cpuMsPerReceipt: number;
}

export interface LedgerBench {
	readonly sessions: number;
	readonly lines: readonly LedgerBenchLine[];
}

const pageEntries = 500;

/**
 * Measures how many receipts a second the hub's ledger stores (signatures checked, numbered, chained, on disk before each is
 * acknowledged) and the gateway credits (pages as they travel, one transaction each), one after the other and both at once.
 */
export async function benchLedger(options: LedgerBenchOptions): Promise<LedgerBench> {
	const { receipts = 8_000, sessions = 100 } = options;
	const half = Math.max(1, Math.floor(receipts / 2));
	const hub = await openHubLedger(join(options.folder, "hub.db"), { clock: options.clock });
	const gateway = await openGatewayLedger(join(options.folder, "gateway.db"));
	try {
		const work = submissions(hub.ledgerId, { count: half * 2, sessions, random: options.random });
		const [first, second] = [work.slice(0, half), work.slice(half)];
		const measured = (part: LedgerBenchLine["part"], run: () => Promise<unknown>) => measure(part, half, options, run);
		const stores = await measured("hub stores", () => store(hub, first, options));
		const credits = await measured("gateway credits", () => credit(hub, gateway, half, options));
		const both = await measured("both at once", () =>
			Promise.all([store(hub, second, options), credit(hub, gateway, half * 2, options)]),
		);
		return { sessions, lines: [stores, credits, both] };
	} finally {
		await gateway.close();
		await hub.close();
	}
}

async function measure(
	part: LedgerBenchLine["part"],
	receipts: number,
	{ clock, cpuMs }: LedgerBenchOptions,
	run: () => Promise<unknown>,
): Promise<LedgerBenchLine> {
	const start = { ms: clock.monotonic(), cpuMs: cpuMs() };
	await run();
	const elapsedMs = clock.monotonic() - start.ms;
	return {
		part,
		receipts,
		perSecond: (1000 * receipts) / elapsedMs,
		cpuMsPerReceipt: (cpuMs() - start.cpuMs) / receipts,
	};
}

interface SignedWork {
	readonly submission: ReceiptSubmission;
	/** Base58. */
	readonly backbone: string;
}

async function store(
	hub: HubLedger,
	work: readonly SignedWork[],
	{ inFlight = 512, signal }: LedgerBenchOptions,
): Promise<void> {
	let next = 0;
	const post = async () => {
		for (let item = work[next++]; item !== undefined; item = work[next++]) {
			signal?.throwIfAborted();
			const { status } = await hub.acceptReceipt(item.submission, { backbone: item.backbone, meteredBytes: null });
			if (status !== "confirmed") throw new Error(`a receipt was ${status}`);
		}
	};
	await Promise.all(Array.from({ length: inFlight }, post));
}

/** Polls as a gateway does until entry `upTo` is credited. */
async function credit(
	hub: HubLedger,
	gateway: GatewayStore,
	upTo: number,
	{ signal }: LedgerBenchOptions,
): Promise<void> {
	for (let { after, hash } = await gateway.cursor(); after < upTo; ) {
		signal?.throwIfAborted();
		await hub.waitForEntries(after, 1000, signal);
		const page = (await hub.entriesAfter(after, after === 0 ? genesisHash : hash, pageEntries)) as EntryPage;
		({ after, hash } = await gateway.credit(parsePage(JSON.parse(JSON.stringify(pageJson(page))))));
	}
}

/** Receipts of one backbone, in the order of a day: every session's first, then every session's second. */
function submissions(
	ledgerId: string,
	{ count, sessions, random }: { readonly count: number; readonly sessions: number; readonly random: Random },
): SignedWork[] {
	const backbone = keyPairFromSeed(random.bytes(32));
	const chains = Array.from({ length: sessions }, () => chain(ledgerId, backbone, random));
	return Array.from({ length: count }, (_, i) => chains[i % sessions]!());
}

function chain(ledgerId: string, backbone: KeyPair, random: Random): () => SignedWork {
	const worker = keyPairFromSeed(random.bytes(32));
	const payout = bindPayout(worker, keyPairFromSeed(random.bytes(32)).publicKey);
	const session = random.bytes(16);
	let number = 0;
	let previous: Uint8Array = new Uint8Array(32);
	return () => {
		number++;
		const pairs = 1 + Math.floor(random.uniform() * 10_000);
		const body = encodeReceipt({
			ledgerId: Buffer.from(ledgerId, "hex"),
			relay: "",
			backbone: backbone.publicKey,
			worker: worker.publicKey,
			payout: payout.wallet,
			payoutSignature: payout.signature,
			session,
			number,
			previous,
			modelId: sha256(session),
			topK: 8,
			policy: 1,
			from: (number - 1) * 1_000,
			to: number * 1_000,
			pairs: BigInt(pairs),
			servedBytes: BigInt(pairs * 3072 * 4),
			unpaid: [[number * 1_000, "late"]],
			digest: sha256(previous),
			issuedAtMs: 0,
		});
		previous = receiptHash(body);
		const answer = { signature: countersignReceipt(worker, body) };
		return {
			backbone: addressOf(backbone.publicKey),
			submission: { body, signature: signReceipt(backbone, body), answer },
		};
	};
}
