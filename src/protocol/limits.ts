const KiB = 1024;
const MiB = 1024 * KiB;

/** Every bound of the wire (wire.md section 1), enforced before anything is allocated. The unit comes last in each name. */
export const limits = {
	/** One message without its tag: 1,365 rows of 3,072 floats; undici and ws users report twice this in memory a message. */
	messageBytes: 16 * MiB,
	/** All messages of a peer before `welcome`: nobody unproved may cost more memory. */
	handshakeBytes: 16 * KiB,
	/** Above it, header, tensor and tag travel as fragments of one message instead of being copied together. */
	singleFrameBytes: 64 * KiB,
	/** Bytes of the tag that follows each message after `welcome`. */
	tagBytes: 16,
	/** Rows of a dispatch. */
	rows: 4096,
	/** (row, expert) pairs of a dispatch: rows x top-8. */
	pairs: 32_768,
	/** Layers of a model; a layer's number is below. */
	layers: 1024,
	/** Experts of a layer; an expert's number is below. */
	experts: 4096,
	/** Experts a row is routed to. */
	topK: 64,
	/** Width of a row, and of an expert. */
	hidden: 65_536,
	/** A code, name, path or explanation, UTF-8. */
	textBytes: 256,
	/** Arrays within arrays, the message itself included. */
	nestingDepth: 4,
	/** Ids, counters, times and sizes: what a double holds exactly. */
	integer: Number.MAX_SAFE_INTEGER,
	/** Runs of experts in `assign` and `holding`: every second of 12,544 experts, with room. */
	ranges: 16_384,
	/** Runs of experts in `hello`, which must stay under `handshakeBytes`; the whole set follows in `holding`. */
	helloRanges: 192,
	/** Backbones that one backbone vouches for. */
	backbones: 16,
	/** Threads, retries and other small counts a peer states about itself. */
	threads: 65_535,
	/** The body of a receipt: some 40,000 unpaid ids. */
	receiptBytes: MiB,
	/** From the first byte to `welcome`, in all. */
	handshakeMs: 10_000,
	/** Idle time before a ping: many proxies cut at 60 s. */
	heartbeatMs: 15_000,
	/** Silence (no byte read) before a peer is dead. */
	deadMs: 45_000,
	/** The shortest heartbeat a backbone may ask for. */
	heartbeatMsMin: 50,
	/** The longest heartbeat or dead time a backbone may ask for. */
	deadMsMax: 600_000,
	/** After a gap in our own timers (sleep, a stopped process) a peer has this long to show a byte. */
	wakeMs: 5_000,
	/** Messages that wait for an owner that has not yet said where they go. */
	inboxMessages: 64,
	/** Bytes of those. */
	inboxBytes: 32 * MiB,
	/** Bytes queued towards a peer that does not read; beyond, the link is cut. */
	pendingBytes: 64 * MiB,
	/** Pings without a pong that are remembered for the round trip. */
	pingsOutstanding: 8,
} as const;
