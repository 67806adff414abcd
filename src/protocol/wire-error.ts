import { KvasirError } from "../errors.ts";

/** A message that is not what the protocol says: `malformed`, with the field's name in `facts.field`. */
export function malformed(field: string, state: string): KvasirError {
	return new KvasirError("malformed", `Cannot read ${field}: ${state}`, { facts: { field } });
}

/** A value beyond a bound of limits.ts: `bounds`, with the field's name in `facts.field`. */
export function outOfBounds(field: string, state: string): KvasirError {
	return new KvasirError("bounds", `Cannot accept ${field}: ${state}`, { facts: { field } });
}
