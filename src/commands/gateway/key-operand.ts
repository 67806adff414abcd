import { addressOf, keyOf } from "../../io/base58.ts";

/** The operand of commands about one worker. */
export const keyOperand = { name: "<key>", about: "a worker's base58 key" };

/** The key as it is stored. Throws `bad_key`. */
export function readKey(operand: string | undefined): string {
	return addressOf(keyOf(operand ?? ""));
}
