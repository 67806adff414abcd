import { limits } from "./limits.ts";
import { type Dispatch, type Dtype, dtypes, type Partials } from "./messages.ts";
import type { MsgpackReader } from "./msgpack-reader.ts";
import type { MsgpackWriter } from "./msgpack-writer.ts";
import { tensorBytes } from "./tensor.ts";
import { malformed, outOfBounds } from "./wire-error.ts";

// dispatch and partials: the hot path. Their tensor is the last element; the writer stops after the tensor's length.

const dtypeNames = Object.keys(dtypes) as Dtype[];

/** Everything of a dispatch but the rows' bytes. */
export function writeDispatch(w: MsgpackWriter, dispatch: Dispatch): void {
	w.array(11).uint(6).uint(dispatch.id).uint(dispatch.layer).uint(dispatch.deadlineMs).uint(dispatch.mode);
	w.uint(dtypes[dispatch.dtype]).uint(dispatch.rowCount);
	w.bin(bytesOf(dispatch.rowIndex)).bin(bytesOf(dispatch.expert)).bin(bytesOf(dispatch.weight));
	w.binHeader(dispatch.rows.length);
}

/** Reads and cross-checks a dispatch: pairs, rows and both tensors (the one sent and the one asked for) against the bounds. */
export function readDispatch(r: MsgpackReader, hidden: number): Dispatch {
	const id = r.uint("id");
	const layer = r.uint("layer", limits.layers - 1);
	const deadlineMs = r.uint("deadlineMs");
	const mode = r.uint("mode", 1) as 0 | 1;
	const dtype = readDtype(r);
	const rowCount = r.uint("rowCount", limits.rows);
	const rowIndex = readPairs(r, "rowIndex");
	const expert = readPairs(r, "expert");
	const weight = readWeights(r);
	const rows = r.bin("rows", limits.messageBytes);
	const pairs = rowIndex.length;
	if (rowCount === 0 || pairs === 0) throw malformed("rowCount", `${rowCount} rows, ${pairs} pairs`);
	if (expert.length !== pairs) throw malformed("expert", `${expert.length} entries for ${pairs} pairs`);
	if (weight.length !== (mode === 1 ? pairs : 0)) throw malformed("weight", `${weight.length} entries in mode ${mode}`);
	const answerBytes = tensorBytes("f32", mode === 1 ? rowCount : pairs, hidden);
	if (answerBytes > limits.messageBytes) throw outOfBounds("rowIndex", `an answer of ${answerBytes} bytes`);
	if (rows.length !== tensorBytes(dtype, rowCount, hidden)) {
		throw malformed("rows", `${rows.length} bytes are not ${rowCount} rows of ${hidden} in ${dtype}`);
	}
	checkPairs(rowIndex, expert, rowCount);
	return { kind: "dispatch", id, layer, deadlineMs, mode, dtype, rowCount, rowIndex, expert, weight, rows };
}

/** Everything of partials but the vectors' bytes. */
export function writePartials(w: MsgpackWriter, partials: Partials): void {
	w.array(5).uint(7).uint(partials.id).uint(partials.computeUs).uint(dtypes[partials.dtype]);
	w.binHeader(partials.vectors.length);
}

/** Reads partials; how many vectors were asked for is known to the dispatcher alone. */
export function readPartials(r: MsgpackReader, hidden: number): Partials {
	const id = r.uint("id");
	const computeUs = r.uint("computeUs");
	const dtype = readDtype(r);
	if (dtype === "q14") throw outOfBounds("dtype", "q14 is for rows, not for vectors");
	const vectors = r.bin("vectors", limits.messageBytes);
	if (vectors.length === 0 || vectors.length % tensorBytes(dtype, 1, hidden) !== 0) {
		throw malformed("vectors", `${vectors.length} bytes are not vectors of ${hidden} in ${dtype}`);
	}
	return { kind: "partials", id, computeUs, dtype, vectors };
}

function readDtype(r: MsgpackReader): Dtype {
	return dtypeNames[r.uint("dtype", dtypeNames.length - 1)]!;
}

/** A u16 per pair, copied out because it may lie at an odd address. */
function readPairs(r: MsgpackReader, field: string): Uint16Array {
	const bytes = r.bin(field, 2 * limits.pairs);
	if (bytes.length % 2 !== 0) throw malformed(field, `${bytes.length} bytes are not u16 values`);
	const values = new Uint16Array(bytes.length / 2);
	new Uint8Array(values.buffer).set(bytes);
	return values;
}

function readWeights(r: MsgpackReader): Float32Array {
	const bytes = r.bin("weight", 4 * limits.pairs);
	if (bytes.length % 4 !== 0) throw malformed("weight", `${bytes.length} bytes are not f32 values`);
	const values = new Float32Array(bytes.length / 4);
	new Uint8Array(values.buffer).set(bytes);
	for (const value of values) if (!Number.isFinite(value)) throw outOfBounds("weight", `${value} is not finite`);
	return values;
}

/** Pairs are ordered by row, rows exist, expert numbers are within the bound. */
function checkPairs(rowIndex: Uint16Array, expert: Uint16Array, rowCount: number): void {
	let previous = 0;
	for (let pair = 0; pair < rowIndex.length; pair++) {
		const row = rowIndex[pair]!;
		if (row < previous) throw malformed("rowIndex", `row ${row} after row ${previous}`);
		if (expert[pair]! >= limits.experts) throw outOfBounds("expert", `${expert[pair]} of ${limits.experts}`);
		previous = row;
	}
	if (previous >= rowCount) throw outOfBounds("rowIndex", `row ${previous} of ${rowCount}`);
}

function bytesOf(array: Uint16Array | Float32Array): Uint8Array {
	return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
