import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { systemClock } from "../io/clock.ts";
import { readEvents } from "./event-log.ts";

function open(problem = "") {
	const stdout = new PassThrough();
	return { stdout, events: readEvents(stdout, { clock: systemClock, name: "hub", problem: () => problem }) };
}

describe("readEvents()", () => {
	it("puts lines together from whatever portions they come in", async () => {
		const { stdout, events } = open();
		const seen: string[] = [];
		events.onEvent(({ event }) => seen.push(event));
		for (const part of ['{"event":"list', 'ening","port":7}\n{"event":"li', 'nked"}\nnot json\n{"no":"event"}\n']) {
			stdout.write(part);
		}
		expect(await events.waitFor(({ event }) => event === "linked", 1000)).toEqual({ event: "linked" });
		expect(await events.waitFor(({ event }) => event === "listening", 1000)).toEqual({ event: "listening", port: 7 });
		expect(seen).toEqual(["listening", "linked"]);
	});

	it("rejects with the error that the process printed", async () => {
		const { stdout, events } = open();
		const waiting = events.waitFor(({ event }) => event === "listening", 1000);
		stdout.end('{"ok":false,"error":{"code":"network","message":"Cannot listen: in use","hint":"Free it"}}\n');
		await expect(waiting).rejects.toMatchObject({ code: "network", message: "Cannot listen: in use", hint: "Free it" });
		await expect(events.waitFor(() => true, 1000)).rejects.toMatchObject({ code: "network" });
	});

	it("rejects with what is on stderr when the process just ends", async () => {
		const { stdout, events } = open("Segmentation fault");
		stdout.end();
		await expect(events.waitFor(() => true, 1000)).rejects.toThrow("Cannot go on: hub ended: Segmentation fault");
	});

	it("rejects after the deadline", async () => {
		const { events } = open("still loading");
		await expect(events.waitFor(() => true, 20)).rejects.toMatchObject({
			code: "timeout",
			message: "Cannot wait for hub: nothing in 20 ms: still loading",
		});
	});
});
