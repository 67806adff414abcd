// GPT-2's byte alphabet: every byte is written as one printable character, so that tokens are text in a file.
// Printable Latin-1 stands for itself; the other 68 bytes are the characters from U+0100 on, in order.

const byteOfCharacter: ReadonlyMap<string, number> = makeAlphabet();

function makeAlphabet(): Map<string, number> {
	const alphabet = new Map<string, number>();
	let next = 256;
	for (let byte = 0; byte < 256; byte++) {
		const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
		alphabet.set(String.fromCharCode(printable ? byte : next++), byte);
	}
	return alphabet;
}

/** The bytes a token of the byte alphabet stands for; characters outside the alphabet stand for their own UTF-8. */
export function bytesOfToken(token: string): Uint8Array {
	const bytes: number[] = [];
	for (const character of token) {
		const byte = byteOfCharacter.get(character);
		if (byte !== undefined) bytes.push(byte);
		else bytes.push(...new TextEncoder().encode(character));
	}
	return Uint8Array.from(bytes);
}
