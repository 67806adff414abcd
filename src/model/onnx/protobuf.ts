/** Writes one protobuf message field by field (protobuf.dev/programming-guides/encoding): all that ONNX files need of it. */
export class ProtobufWriter {
	readonly #parts: Uint8Array[] = [];
	#byteLength = 0;

	/** A varint field; negative numbers as their 64-bit two's complement. */
	int(field: number, value: number | bigint): this {
		return this.#tag(field, 0).#varint(BigInt.asUintN(64, BigInt(value)));
	}

	/** A 32-bit floating-point field. */
	float(field: number, value: number): this {
		const bytes = new Uint8Array(4);
		new DataView(bytes.buffer).setFloat32(0, value, true);
		return this.#tag(field, 5).#push(bytes);
	}

	/** A length-delimited field; the bytes are not copied before `finish`. */
	bytes(field: number, value: Uint8Array): this {
		return this.#tag(field, 2).#varint(BigInt(value.byteLength)).#push(value);
	}

	string(field: number, value: string): this {
		return this.bytes(field, new TextEncoder().encode(value));
	}

	message(field: number, value: ProtobufWriter): this {
		this.#tag(field, 2).#varint(BigInt(value.#byteLength));
		for (const part of value.#parts) this.#push(part);
		return this;
	}

	/** The encoded message. */
	finish(): Uint8Array {
		const bytes = new Uint8Array(this.#byteLength);
		let offset = 0;
		for (const part of this.#parts) {
			bytes.set(part, offset);
			offset += part.byteLength;
		}
		return bytes;
	}

	#tag(field: number, wireType: number): this {
		return this.#varint(BigInt(field * 8 + wireType));
	}

	#varint(value: bigint): this {
		const bytes: number[] = [];
		let rest = value;
		do {
			const low = Number(rest & 127n);
			rest >>= 7n;
			bytes.push(rest === 0n ? low : low | 128);
		} while (rest !== 0n);
		return this.#push(Uint8Array.from(bytes));
	}

	#push(bytes: Uint8Array): this {
		this.#parts.push(bytes);
		this.#byteLength += bytes.byteLength;
		return this;
	}
}
