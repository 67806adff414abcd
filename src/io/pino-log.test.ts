import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { pinoLog } from "./pino-log.ts";

async function logged(text: boolean): Promise<string> {
	const stream = new PassThrough();
	const log = await pinoLog({ level: "info", stream, text });
	log.debug({}, "not shown");
	log.child({ worker: "w1" }).warn({ pairs: 3 }, "late");
	return String(stream.read());
}

it("pinoLog() writes one JSON line per entry at or above its level", async () => {
	expect(JSON.parse(await logged(false))).toMatchObject({ level: 40, worker: "w1", pairs: 3, msg: "late" });
});

it("pinoLog() writes a line for people on a terminal", async () => {
	expect(await logged(true)).toMatch(/^\d\d:\d\d:\d\d warn late, worker w1, pairs 3\n$/);
});
