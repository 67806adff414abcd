// A job is what all threads work on together: described in words at the start of the exchange, cut into units that threads claim
// one after the other. Which thread computes a unit, and how a job is cut, never changes a bit of the answer.

/** Words of the control block, which is shared and touched with Atomics only. */
export const control = {
	/** Counts jobs; threads sleep on it. */
	generation: 0,
	/** The next unit to claim. */
	next: 1,
	/** Threads that have not finished the job yet. */
	running: 2,
	/** One of `failures`; the first one stands, and the units left are skipped. */
	failure: 3,
	/** Units of the second half of an expert job that are finished. */
	partials: 4,
	stop: 5,
	words: 8,
} as const;

export const failures = { none: 0, row: 1, result: 2, bounds: 3, weights: 4, crashed: 5 } as const;
export type Failure = (typeof failures)[keyof typeof failures];

export const jobKinds = { experts: 0, matrices: 1, pack: 2, exponentials: 3 } as const;

/** Words of a job's header, at the start of the exchange. Offsets are in bytes of the exchange. */
export const header = {
	kind: 0,
	units: 1,
	/** Length of a row. */
	inputs: 2,
	rowCount: 3,
	rows: 4,
	/** Offset of the scales of rows that came quantised; -1 when they are floats. */
	scales: 5,
	tasks: 6,
	taskCount: 7,
	// experts
	width: 8,
	/** Into how many units each half of a task is cut. */
	parts: 9,
	/** Per position: its row, and its pair. Positions are the pairs sorted by expert. */
	rowOf: 10,
	pairOf: 11,
	/** (positions, width) */
	h: 12,
	/** (pairs, inputs) */
	y: 13,
	/** Per pair, for whole rows; -1 when every pair's own vector is asked for. */
	weights: 14,
	/** rowCount + 1 words: the first pair of each row. */
	firstPair: 15,
	/** (rowCount, inputs) sums of whole rows. */
	sums: 16,
	/** Per task: units of its first half that are finished. */
	finished: 17,
	words: 32,
} as const;

/** Words of an expert task: a tile of positions of one expert. */
export const expertTask = { memory: 0, first: 1, count: 2, gate: 3, up: 5, down: 7, words: 9 } as const;

/** Words of a matrix unit: some outputs of one matrix for a tile of rows. */
export const matrixUnit = {
	memory: 0,
	type: 1,
	at: 2,
	from: 3,
	to: 4,
	outputs: 5,
	out: 6,
	firstRow: 7,
	rowCount: 8,
	words: 9,
} as const;

/** Words of a pack unit: some rows of a file, and where their panels go. */
export const packUnit = {
	memory: 0,
	type: 1,
	source: 2,
	rowBytes: 3,
	inputs: 4,
	outputs: 5,
	to: 6,
	words: 7,
} as const;
