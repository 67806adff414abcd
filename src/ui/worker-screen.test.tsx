import { render } from "ink-testing-library";
import { describe, expect, it } from "vitest";
import { WorkerScreen, type WorkerView } from "./worker-screen.tsx";

const view: WorkerView = {
	gateway: "wss://gate.example",
	worker: "6yKHERk8rsbmJxvMpPuwPs1ct3hRiP7xaJF2tvnGU6nK",
	payout: "7EqQdEULxWcraVx3mXKFjc84LhCkMGZCkRuDpvcMwJeK",
	engine: "canonical-1",
	holds: "4 layers: experts 0-7",
	heldBytes: 3.6 * 2 ** 20,
	upMs: 3_723_000,
	links: [{ backbone: "GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB", state: "linked", roundTripMs: 12.34 }],
	work: { dispatches: 1204, pairs: 9632, servedBytes: 9632 * 1024, computeMs: 0.64 },
	pay: { receipts: 3, kvr: "0.069041" },
	unpaid: { late: 12, wrong: 0 },
	refused: { overloaded: 2 },
	notes: ["12:00:01 receipt 3 countersigned"],
	draining: false,
	left: false,
};

const frame = (changes: Partial<WorkerView> = {}) =>
	render(<WorkerScreen view={{ ...view, ...changes }} />).lastFrame()!;

describe("WorkerScreen", () => {
	it("shows who, what, work, pay, and what is not paid", () => {
		expect(frame()).toMatchInlineSnapshot(`
			"kvasir worker  serving  up 1:02:03
			gateway   wss://gate.example
			worker    6yKHERk8rsbmJxvMpPuwPs1ct3hRiP7xaJF2tvnGU6nK
			paid to   7EqQdEULxWcraVx3mXKFjc84LhCkMGZCkRuDpvcMwJeK
			serves    4 layers: experts 0-7, 3.6 MiB, engine canonical-1
			backbone  GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB  linked, 12.3 ms round trip
			work      9,632 pairs in 1,204 dispatches, 9.4 MiB, 640 us a dispatch
			pay       0.069041 KVR in 3 receipts
			unpaid    late 12
			refused   overloaded 2
			12:00:01 receipt 3 countersigned
			Ctrl-C drains and leaves"
		`);
	});

	it("says that it dials while nothing is linked, and that it drains", () => {
		expect(frame({ links: [] })).toContain("dialling");
		expect(frame({ draining: true })).toContain("Ctrl-C again quits at once");
	});

	it("ends with what was done, and no advice", () => {
		const last = frame({ draining: true, left: true });
		expect(last).toMatch(/^kvasir worker {2}left/);
		expect(last).toContain("0.069041 KVR in 3 receipts");
		expect(last).not.toMatch(/Ctrl-C|round trip/);
	});

	it("shows no line for counters that are zero", () => {
		expect(frame({ unpaid: {}, refused: { overloaded: 0 } })).not.toMatch(/unpaid|refused/);
	});

	it("says when the node itself is paid", () => {
		expect(frame({ payout: view.worker })).toContain(`${view.worker} (this node)`);
	});
});
