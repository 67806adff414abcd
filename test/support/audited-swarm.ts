import { type AuditEvent, type AuditParts, Audits } from "../../src/backbone/pay/audits.ts";
import type { Evidence } from "../../src/backbone/pay/evidence.ts";
import { ReceiptBook } from "../../src/backbone/pay/receipt-book.ts";
import type { ExpertBatch } from "../../src/experts/engine.ts";
import { addressOf } from "../../src/io/base58.ts";
import { silentLog } from "../../src/io/log.ts";
import { type HubStore, openHubStore } from "../../src/ledger/hub-store.ts";
import { settle } from "./fake-clock.ts";
import { type MemoryBackbone, memoryBackbone, requestOf, testModel } from "./memory-backbone.ts";
import { countersignAll, expertVector, type Script, type ScriptedWorker, scriptedIdentity } from "./scripted-worker.ts";
import { seededRandom } from "./seeded-random.ts";

/** A backbone with its real dispatcher, audits, receipts and a hub's real ledger, over links in memory. */
export interface AuditedSwarm {
	readonly backbone: MemoryBackbone;
	readonly audits: Audits;
	readonly hub: HubStore;
	readonly failures: AuditEvent[];
	readonly evidence: Evidence[];
	readonly book: ReceiptBook;
	/** A worker that joins and has its account opened. */
	join(script?: Script): Promise<ScriptedWorker>;
	/** One row for all experts of the test model's topK; what came back, -1 where nothing did. */
	ask(sequence?: number): Promise<void>;
	/** Receipts for what is settled and audited, countersigned and stored. */
	issue(): Promise<void>;
	/** Served bytes that the hub credits, and the dispatches its receipts call unpaid, by reason. */
	ledger(): Promise<{ readonly bytes: bigint; readonly unpaid: Readonly<Record<string, number>> }>;
	close(): Promise<void>;
}

/** The scripted workers' function, as the backbone's own file would give it. */
export async function recompute({ layer, rows, rowIndex, expert }: Omit<ExpertBatch, "weight">): Promise<Float32Array> {
	const { hidden } = testModel;
	if (rows.dtype !== "f32") throw new Error("only f32 here");
	const out = new Float32Array(expert.length * hidden);
	expert.forEach((id, pair) => {
		const row = rows.values.subarray(rowIndex[pair]! * hidden, (rowIndex[pair]! + 1) * hidden);
		out.set(expertVector(layer, id, row), pair * hidden);
	});
	return out;
}

export async function auditedSwarm({
	seed = 1,
	wholeRows = true,
	...options
}: Partial<AuditParts> & { seed?: number; wholeRows?: boolean } = {}): Promise<AuditedSwarm> {
	const failures: AuditEvent[] = [];
	const evidence: Evidence[] = [];
	const random = seededRandom(seed);
	const account = {
		sent: (...args: Parameters<ReceiptBook["sent"]>) => book.sent(...args),
		paid: (...args: Parameters<ReceiptBook["paid"]>) => book.paid(...args),
		unpaid: (...args: Parameters<ReceiptBook["unpaid"]>) => book.unpaid(...args),
		void: (...args: Parameters<ReceiptBook["void"]>) => book.void(...args),
	};
	const backbone = memoryBackbone({
		account,
		wholeRows,
		accepted: (dispatch) => audits.accepted(dispatch),
		listener: {
			sent: (worker, id) => book.sent(worker, id),
			countersigned: (worker, countersign) => book.countersigned(worker, countersign),
		},
	});
	const identity = scriptedIdentity(200);
	const hub = await openHubStore(":memory:", { clock: backbone.clock, random: seededRandom(99) });
	const origin = { backbone: addressOf(identity.publicKey), meteredBytes: null };
	const ledgerId = new Uint8Array(Buffer.from(hub.ledgerId, "hex"));
	const book = new ReceiptBook({
		...{ identity, model: testModel, clock: backbone.clock, random, log: silentLog, journals: null },
		api: { postReceipt: (_, submission) => hub.acceptReceipt(submission, origin) },
		hub: () => ({ host: "", apiPort: 0, ledgerId }),
		audited: (worker) => audits.finish(worker),
		emit() {},
	});
	const audits = new Audits({
		...{ model: testModel, clock: backbone.clock, log: silentLog, engineClass: "f32", recompute, random },
		keep: async (kept) => void evidence.push(kept),
		hold: (worker, id) => book.hold(worker, id),
		release: (worker, id) => book.release(worker, id),
		condemn(worker) {
			book.condemn(worker);
			backbone.roster.quarantine(worker);
		},
		emit: (event) => failures.push(event),
		...options,
	});
	const request = requestOf([[1, 2]]);
	return {
		...{ backbone, audits, hub, failures, evidence, book },
		async join(script) {
			const worker = await backbone.join({ onOther: countersignAll, ...script });
			book.open(backbone.roster.workers.at(-1)!);
			return worker;
		},
		async ask(sequence = 1) {
			await backbone.dispatcher.request(sequence === 1 ? request : { ...request, sequence: [sequence] });
		},
		async issue() {
			await settle(2);
			await book.flush();
		},
		async ledger() {
			const bytes = (await hub.totals(0, null)).reduce((sum, total) => sum + total.bytes, 0n);
			const page = await hub.entriesAfter(0, "0".repeat(64), 1000);
			const unpaid: Record<string, number> = {};
			for (const entry of "entries" in page ? page.entries : []) {
				for (const [reason, count] of Object.entries(entry.unpaid)) unpaid[reason] = (unpaid[reason] ?? 0) + count;
			}
			return { bytes, unpaid };
		},
		async close() {
			backbone.close();
			await settle();
			await book.close();
			await hub.close();
		},
	};
}
