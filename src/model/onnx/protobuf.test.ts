import { expect, test } from "vitest";
import { ProtobufWriter } from "./protobuf.ts";

const hex = (writer: ProtobufWriter) => Buffer.from(writer.finish()).toString("hex");

// The examples of protobuf.dev/programming-guides/encoding.
test("the encodings of the protobuf guide", () => {
	expect(hex(new ProtobufWriter().int(1, 150))).toBe("089601");
	expect(hex(new ProtobufWriter().string(2, "testing"))).toBe("120774657374696e67");
	expect(hex(new ProtobufWriter().message(3, new ProtobufWriter().int(1, 150)))).toBe("1a03089601");
	expect(hex(new ProtobufWriter().int(1, -2))).toBe("08feffffffffffffffff01");
});

test("floats are little-endian, large field numbers take two bytes, bytes are kept", () => {
	expect(hex(new ProtobufWriter().float(2, 1.5))).toBe("150000c03f");
	expect(hex(new ProtobufWriter().int(20, 1))).toBe("a00101");
	expect(hex(new ProtobufWriter().bytes(9, Uint8Array.of(0, 255)))).toBe("4a0200ff");
	expect(hex(new ProtobufWriter().int(1, 2n ** 63n - 1n))).toBe("08ffffffffffffffff7f");
});
