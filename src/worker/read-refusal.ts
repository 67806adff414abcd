import type { Readable } from "node:stream";
import type { Clock } from "../io/clock.ts";

/** A gateway's refusal is far shorter. */
const bodyBytesMax = 1_024;
const bodyMs = 2_000;

/** The beginning of an answer's body, as far as it comes in a moment; ends the stream. Never rejects. */
export function readRefusal(body: Readable, clock: Clock): Promise<string> {
	return new Promise((resolve) => {
		const parts: Buffer[] = [];
		let bytes = 0;
		const done = () => {
			cancel();
			body.destroy();
			resolve(Buffer.concat(parts).subarray(0, bodyBytesMax).toString("utf8"));
		};
		const cancel = clock.after(bodyMs, done);
		body.on("data", (part: Buffer) => {
			parts.push(part);
			bytes += part.length;
			if (bytes >= bodyBytesMax) done();
		});
		body.once("end", done).once("close", done).on("error", done);
	});
}
