import { type ErrorCode, KvasirError } from "../errors.ts";
import { closeCodes } from "../protocol/messages.ts";
import type { WorkerEvent } from "./worker-event.ts";

/** How a link ended, as it is told with the wait before the next dial. */
export type Ending = Omit<Extract<WorkerEvent, { event: "disconnected" }>, "event" | "redialInMs">;

const ownHome =
	"Another process serves under this key: give each worker a --home of its own; a copied home has the same key";
const bytesChanged =
	"Something in between changes what is sent, or the versions differ: update the older, try another path";
const pathCuts =
	"If it repeats: kvasir doctor --gateway URL --idle 120 measures after which time the path cuts a silent link";

/** What each close code (wire.md section 3) means to a worker; docs/operating.md has the same table. */
const byCloseCode: Readonly<Record<number, readonly [code: string, meaning: string, hint: string | null]>> = {
	[closeCodes.normal]: ["closed", "the backbone ended it", null],
	[closeCodes.goingAway]: ["closed", "the backbone or this worker goes away", null],
	[closeCodes.text]: ["closed", "a text came where only binary is spoken", bytesChanged],
	[closeCodes.lost]: ["closed", "it was cut without a word", pathCuts],
	[closeCodes.tooBig]: ["closed", "a message was too big, or too many waited", bytesChanged],
	[closeCodes.malformed]: ["closed", "a message was not as it was sent", bytesChanged],
	[closeCodes.takenOver]: ["taken_over", "a newer link of this key took over", ownHome],
	[closeCodes.deadPeer]: ["dead_peer", "nothing came for too long", pathCuts],
};

/** The end of a link that nobody explained with a bye. */
export function endingOf(closeCode: number, reason: string): Ending {
	const [code, meaning, hint] = byCloseCode[closeCode] ?? [
		"closed",
		"with a code that this version does not know",
		null,
	];
	const message = `the connection ended: ${meaning} (${closeCode}${reason === "" ? "" : ` ${reason}`})`;
	return { code, message, hint, reason: null };
}

/** A bye after which to come back. */
export function byeEnding(code: string, text: string): Ending {
	const message = text === "" ? "the backbone said goodbye" : text;
	return { code, message, hint: code === "key_in_use" ? ownHome : null, reason: null };
}

/** What a bye for good means: a person has to do something. */
const forGood: Readonly<Record<string, readonly [code: ErrorCode, hint: string]>> = {
	key_in_use: ["key_in_use", ownHome],
	taken_over: ["key_in_use", ownHome],
	self_check: ["version", "This Kvasir and the backbone's have different kernels: update the older of the two"],
	engine_class: [
		"not_admitted",
		"Join with --engine canonical, or ask the backbone's operator to take this one (backbone dispatch --accept)",
	],
};

/** The error of a bye that asks not to come back. */
export function saidGoodbye(code: string, text: string): KvasirError {
	const known = Object.hasOwn(forGood, code) ? forGood[code] : undefined;
	if (known !== undefined) return new KvasirError(known[0], `Cannot serve: ${text}`, { hint: known[1] });
	return new KvasirError("closed", `Cannot go on serving: the backbone said goodbye for good (${code}: ${text})`, {
		hint: "Its operator has to say why",
	});
}
