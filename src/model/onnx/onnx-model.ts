import { ProtobufWriter } from "./protobuf.ts";

// ONNX models as values, and their encoding. Field numbers are those of onnx.proto3, IR version 10.

/** Element types used here, with their TensorProto.DataType number. */
const elementTypes = { float: 1, uint8: 2, int64: 7 } as const;
export type ElementType = keyof typeof elementTypes;

/** An attribute of a node; ONNX tells an integer 1 from a float 1. */
export type Attribute = { readonly int: number } | { readonly ints: readonly number[] } | { readonly float: number };

export interface OnnxNode {
	readonly op: string;
	/** `com.microsoft` for onnxruntime's own operators; absent: ONNX. */
	readonly domain?: "com.microsoft";
	readonly inputs: readonly string[];
	readonly outputs: readonly string[];
	readonly attributes?: Readonly<Record<string, Attribute>>;
}

/** An input or output of the graph; a text dimension may be of any size. */
export interface OnnxValue {
	readonly name: string;
	readonly type: ElementType;
	readonly dims: readonly (number | string)[];
}

/** A constant of the graph. `external`: its bytes are handed to the session beside the model, so that no model exceeds 2 GiB. */
export interface OnnxConstant {
	readonly name: string;
	readonly type: ElementType;
	readonly dims: readonly number[];
	readonly data: Float32Array | BigInt64Array | Uint8Array;
	readonly external?: boolean;
}

export interface OnnxGraph {
	readonly nodes: readonly OnnxNode[];
	readonly inputs: readonly OnnxValue[];
	readonly outputs: readonly OnnxValue[];
	readonly constants: readonly OnnxConstant[];
}

/** Bytes of a constant that lie outside the model; `path` is only a name. */
export interface ExternalData {
	readonly path: string;
	readonly data: Uint8Array;
}

/** A graph as onnxruntime takes it. */
export interface OnnxModel {
	readonly bytes: Uint8Array;
	readonly externalData: readonly ExternalData[];
}

/** Encodes a graph as a ModelProto of operator set 23 and com.microsoft 1. */
export function encodeModel(graph: OnnxGraph): OnnxModel {
	const model = new ProtobufWriter().int(1, 10).string(2, "kvasir").message(7, encodeGraph(graph));
	model.message(8, new ProtobufWriter().string(1, "").int(2, 23));
	model.message(8, new ProtobufWriter().string(1, "com.microsoft").int(2, 1));
	const external = graph.constants.filter((constant) => constant.external);
	return {
		bytes: model.finish(),
		externalData: external.map((constant) => ({ path: constant.name, data: bytesOf(constant.data) })),
	};
}

/** A one-dimensional int64 constant: shapes, axes, split sizes. */
export function int64Constant(name: string, values: readonly number[]): OnnxConstant {
	return { name, type: "int64", dims: [values.length], data: BigInt64Array.from(values, BigInt) };
}

function encodeGraph(graph: OnnxGraph): ProtobufWriter {
	const writer = new ProtobufWriter();
	for (const node of graph.nodes) writer.message(1, encodeNode(node));
	writer.string(2, "kvasir");
	for (const constant of graph.constants) writer.message(5, encodeConstant(constant));
	for (const input of graph.inputs) writer.message(11, encodeValue(input));
	for (const output of graph.outputs) writer.message(12, encodeValue(output));
	return writer;
}

function encodeNode(node: OnnxNode): ProtobufWriter {
	const writer = new ProtobufWriter();
	for (const input of node.inputs) writer.string(1, input);
	for (const output of node.outputs) writer.string(2, output);
	writer.string(3, node.outputs[0]!).string(4, node.op);
	for (const [name, value] of Object.entries(node.attributes ?? {})) writer.message(5, encodeAttribute(name, value));
	if (node.domain) writer.string(7, node.domain);
	return writer;
}

function encodeAttribute(name: string, attribute: Attribute): ProtobufWriter {
	const writer = new ProtobufWriter().string(1, name);
	if ("float" in attribute) return writer.float(2, attribute.float).int(20, 1);
	if ("int" in attribute) return writer.int(3, attribute.int).int(20, 2);
	for (const value of attribute.ints) writer.int(8, value);
	return writer.int(20, 7);
}

function encodeConstant(constant: OnnxConstant): ProtobufWriter {
	const writer = new ProtobufWriter();
	for (const dim of constant.dims) writer.int(1, dim);
	writer.int(2, elementTypes[constant.type]).string(8, constant.name);
	const bytes = bytesOf(constant.data);
	if (!constant.external) return writer.bytes(9, bytes);
	const entries = { location: constant.name, offset: "0", length: String(bytes.byteLength) };
	for (const [key, value] of Object.entries(entries)) {
		writer.message(13, new ProtobufWriter().string(1, key).string(2, value));
	}
	return writer.int(14, 1);
}

function encodeValue(value: OnnxValue): ProtobufWriter {
	const shape = new ProtobufWriter();
	for (const dim of value.dims) {
		const writer = new ProtobufWriter();
		shape.message(1, typeof dim === "number" ? writer.int(1, dim) : writer.string(2, dim));
	}
	const tensor = new ProtobufWriter().int(1, elementTypes[value.type]).message(2, shape);
	return new ProtobufWriter().string(1, value.name).message(2, new ProtobufWriter().message(1, tensor));
}

function bytesOf(data: OnnxConstant["data"]): Uint8Array {
	return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
