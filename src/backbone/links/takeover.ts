import type { Hello } from "../../protocol/messages.ts";

// Who may have the one link of a worker key (wire.md section 3). Decided after `auth`, so every name here is proved.

/** What is known of the link a key has now. */
export interface Incumbent {
	readonly instance: Uint8Array;
	readonly epoch: number;
}

export type Verdict =
	/** Nobody has the key's link. */
	| { readonly kind: "admit" }
	/** The same process, or its successor: at once. */
	| { readonly kind: "take_over" }
	/** Another instance under the same key: the old link is asked first whether it lives. */
	| { readonly kind: "ask_incumbent" }
	| { readonly kind: "stale"; readonly epoch: number };

/**
 * @param incumbent the link the key has, if any
 * @param lastEpoch the highest epoch seen of this (key, instance), -1 when none
 */
export function decideTakeover(
	newcomer: Pick<Hello, "instance" | "epoch">,
	incumbent: Incumbent | null,
	lastEpoch: number,
): Verdict {
	if (newcomer.epoch <= lastEpoch) return { kind: "stale", epoch: lastEpoch };
	if (incumbent === null) return { kind: "admit" };
	if (Buffer.compare(newcomer.instance, incumbent.instance) === 0) return { kind: "take_over" };
	return { kind: "ask_incumbent" };
}
