/** Angles of the rotary embedding for one step: computed once, used by every attention layer. */
export interface Rotation {
	/** (tokens, rotaryDims / 2) */
	readonly cos: Float64Array;
	readonly sin: Float64Array;
	/** rotaryDims / 2 */
	readonly pairs: number;
}

/** `angle = position * theta^(-2i/R)` for the tokens at `firstPosition`, `firstPosition + 1`, ... */
export function rotationAt(firstPosition: number, tokens: number, rotaryDims: number, theta: number): Rotation {
	const pairs = rotaryDims / 2;
	const rotation = { cos: new Float64Array(tokens * pairs), sin: new Float64Array(tokens * pairs), pairs };
	for (let i = 0; i < pairs; i++) {
		const frequency = theta ** ((-2 * i) / rotaryDims);
		for (let token = 0; token < tokens; token++) {
			const angle = (firstPosition + token) * frequency;
			rotation.cos[token * pairs + i] = Math.cos(angle);
			rotation.sin[token * pairs + i] = Math.sin(angle);
		}
	}
	return rotation;
}

/** Rotates the pairs (i, i + R/2) of the head that starts at `start`, in place (NeoX style). */
export function rotate(values: Float32Array, start: number, { cos, sin, pairs }: Rotation, token: number): void {
	for (let i = 0; i < pairs; i++) {
		const c = cos[token * pairs + i]!;
		const s = sin[token * pairs + i]!;
		const low = values[start + i]!;
		const high = values[start + pairs + i]!;
		values[start + i] = low * c - high * s;
		values[start + pairs + i] = low * s + high * c;
	}
}
