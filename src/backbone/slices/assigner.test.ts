import { describe, expect, it } from "vitest";
import { settle } from "../../../test/support/fake-clock.ts";
import { memoryBackbone, testModel } from "../../../test/support/memory-backbone.ts";
import type { ScriptedWorker } from "../../../test/support/scripted-worker.ts";
import { silentLog } from "../../io/log.ts";
import type { ExpertRange, SessionMessage } from "../../protocol/messages.ts";
import type { BackboneEvent } from "../backbone-options.ts";
import type { WorkerLink } from "../links/worker-link.ts";
import { Assigner } from "./assigner.ts";

const sliceBytes = 1000;
/** Memory for so many experts as the engine f32 holds them: three matrices of floats. */
const room = (experts: number) => experts * 3 * 4 * testModel.hidden * testModel.expertWidth;

/** The real roster over memory links, and an assigner that listens to it. */
function startScene(layers = [0, 1, 2]) {
	const listeners = new Set<(event: BackboneEvent) => void>();
	const emit = (event: BackboneEvent) => {
		for (const listener of listeners) listener(event);
	};
	const backbone = memoryBackbone({
		listener: { holding: (worker: WorkerLink) => emit({ event: "holding", worker }) },
	});
	let told = 0;
	let prepared = 0;
	const assigner = new Assigner({
		backbone: {
			get workers() {
				return backbone.roster.workers;
			},
			subscribe(listener) {
				listeners.add(listener);
				return () => listeners.delete(listener);
			},
		},
		model: testModel,
		layers,
		slices: { digest: null, sliceBytes, prepare: () => prepared++ },
		clock: backbone.clock,
		log: silentLog,
	});
	/** Roster events are kept in a list: those since the last call are passed on. */
	const pass = () => {
		for (; told < backbone.events.length; told++) emit(backbone.events[told]!);
	};
	const elapse = async (ms: number) => {
		await settle();
		pass();
		await backbone.clock.advance(ms);
		await settle();
	};
	const join = async (seed: number, memoryBytes: number, holds: readonly ExpertRange[] = [], epoch = 1) => {
		const worker = await backbone.join({ seed, holds, epoch, offer: { memoryBytes } });
		worker.link.send({ kind: "holding", ready: holds });
		await settle();
		return worker;
	};
	return { backbone, assigner, join, elapse, prepared: () => prepared };
}

const assigns = ({ others }: ScriptedWorker) =>
	others.filter((message) => message.kind === "assign") as Extract<SessionMessage, { kind: "assign" }>[];
const countOf = (ranges: readonly ExpertRange[] | undefined) =>
	(ranges ?? []).reduce((sum, { count }) => sum + count, 0);
const obey = (worker: ScriptedWorker) => worker.link.send({ kind: "holding", ready: assigns(worker).at(-1)!.wanted });

describe("Assigner", () => {
	it("tells workers that hold nothing by wish what to hold, by their memory, and leaves the others alone", async () => {
		const { backbone, assigner, join, elapse, prepared } = startScene();
		const fixed = await join(1, room(8), [{ layer: 0, first: 0, count: 8 }]);
		const [small, large] = [await join(2, room(4)), await join(3, room(12))];
		await elapse(1000);
		expect(assigns(fixed)).toEqual([]);
		expect([countOf(assigns(small)[0]?.wanted), countOf(assigns(large)[0]?.wanted)]).toEqual([4, 12]);
		const layers = [...assigns(small)[0]!.wanted, ...assigns(large)[0]!.wanted].map(({ layer }) => layer);
		expect(layers).not.toContain(0);
		expect(prepared()).toBeGreaterThan(0);
		assigner.close();
		backbone.close();
	});

	it("keeps a share for one that left a moment, and gives it to others when it stays away", async () => {
		const { backbone, assigner, join, elapse } = startScene([1]);
		const [first, second] = [await join(1, room(4)), await join(2, room(4))];
		await elapse(1000);
		obey(first);
		obey(second);
		await elapse(1000);
		const before = assigns(second).length;
		first.link.close(1001, "restart");
		await elapse(10_000);
		const again = await join(1, room(4), [], 2);
		await elapse(1000);
		expect(assigns(again)[0]?.wanted).toEqual(assigns(first)[0]?.wanted);
		expect(assigns(second)).toHaveLength(before);
		again.link.close(1001, "gone");
		const third = await join(3, room(4));
		await elapse(1000);
		await elapse(61_000);
		await elapse(1000);
		expect(assigns(third).at(-1)?.wanted).toEqual(assigns(first)[0]?.wanted);
		assigner.close();
		backbone.close();
	});

	it("believes a worker that says it is short", async () => {
		const { backbone, assigner, join, elapse } = startScene([0]);
		const short = await join(1, room(8));
		await elapse(1000);
		const had = assigns(short)[0]!.wanted;
		expect(countOf(had)).toBe(8);
		short.link.send({ kind: "refuse", id: null, code: "overloaded", text: "memory is full" });
		short.link.send({ kind: "holding", ready: [{ layer: 0, first: 0, count: 3 }] });
		const other = await join(2, room(8));
		await elapse(1000);
		expect(assigns(short).at(-1)!.wanted).toEqual([{ layer: 0, first: 0, count: 3 }]);
		expect(countOf(assigns(other).at(-1)!.wanted)).toBe(8);
		assigner.close();
		backbone.close();
	});

	it("replicates what the router chose most", async () => {
		const { backbone, assigner, join, elapse } = startScene([0]);
		for (let times = 0; times < 100; times++) assigner.routed({ layer: 0, expert: Uint16Array.of(5, 6) });
		const first = await join(1, room(8));
		await elapse(1000);
		obey(first);
		const second = await join(2, room(2));
		await elapse(1000);
		expect(assigns(second).at(-1)!.wanted).toEqual([{ layer: 0, first: 5, count: 2 }]);
		assigner.close();
		backbone.close();
	});
});
