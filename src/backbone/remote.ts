// The seam between the decode loop (which computes and never touches a socket) and the swarm (which owns sockets and never computes).

/** The (row, expert) pairs of one layer that should be computed elsewhere. Pairs are ordered by row, then by rank. */
export interface RemoteRequest {
	readonly layer: number;
	readonly rowCount: number;
	/** (rowCount, hidden) */
	readonly rows: Float32Array;
	/** The same rows in numerics.md's activation blocks, where gate and up are block-quantised: half the bytes on the wire, same bits. */
	readonly quantised?: {
		/** (rowCount, hidden) */
		readonly q: Int16Array;
		/** (rowCount, ceil(hidden / 256)) */
		readonly scales: Float32Array;
	};
	readonly rowIndex: Uint16Array;
	readonly expert: Uint16Array;
	/** The router's weight of each pair, so that a worker may sum whole rows (mode 1). */
	readonly weight: Float32Array;
	/** Which phase asks: a prefill may wait behind a decode. */
	readonly phase: "prefill" | "decode";
	/** Ids of the sequences the rows belong to, per row: taints and counters are kept by sequence. */
	readonly sequence: readonly number[];
}

/** What came back. A pair that nobody answered in time is not an error: the decode loop computes it from the local copy. */
export interface RemoteAnswer {
	/** (pairs, hidden). Where `summed[row]` is 1, the slot of the row's first pair holds the finished weighted sum of that row. */
	readonly vectors: Float32Array;
	/** Per pair: index into `workers` of who answered, -1 if nobody did. */
	readonly worker: Int16Array;
	/** Per row: 1 when a worker that held all its experts summed the whole row. */
	readonly summed: Uint8Array;
	/** Base58 keys. */
	readonly workers: readonly string[];
	/** Pairs that were asked again of another holder. */
	readonly retried: number;
	/** Reason per unanswered pair group, for counters: e.g. not_holding, deadline, closed. */
	readonly failures: readonly { readonly reason: string; readonly pairs: number }[];
}

export interface RemoteExperts {
	/** Never rejects for what a worker does; rejects only when the request itself is impossible, the backbone is closing or `signal` aborts. */
	request(request: RemoteRequest, signal?: AbortSignal): Promise<RemoteAnswer>;
	/** True when some connected worker holds this expert now. */
	holds(layer: number, expert: number): boolean;
}
