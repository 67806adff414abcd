// Every bound of the splice room, named, with its reason. Options override a few of them; all are visible as metrics.

/** Bounds of everything that a stranger can reach. */
export const spliceLimits = {
	/** A worker's request is about 600 bytes; cookies and forwarded headers of proxies stay below this. */
	requestHeadBytesMax: 8_192,
	/** The answer's head that gateway and hub read before they tie anything. */
	answerHeadBytesMax: 8_192,
	/** A request target: path and query. */
	targetBytesMax: 512,
	/** A model's name. */
	modelNameBytesMax: 128,
	/** Body of a POST to an API. A receipt is about 1 KiB. */
	bodyBytesMax: 262_144,
	/** From the first byte of a connection to its complete request head (TLS handshake apart). */
	headMs: 10_000,
	/** TLS handshake. */
	tlsHandshakeMs: 10_000,
	/** Dialling hub or backbone: both are near. */
	dialMs: 3_000,
	/** From a request to a backbone to its answer's head. */
	backboneAnswerMs: 5_000,
	/** How long a worker waits at the hub for a parked connection. */
	parkedWaitMs: 5_000,
	/** From a request to the hub to its answer's head: the hub's own two waits and a second. */
	hubAnswerMs: 11_000,
	/** A tied pair of sockets on which nothing moves, neither way: both sides ping every 15 s, and give up after 45 s. */
	idleMs: 90_000,
	/** A link on which `kvasir doctor` measures how long the path leaves a silent one open. */
	idleHeldMs: 330_000,
	/** A pair of which one direction has ended. */
	halfClosedMs: 30_000,
	/** How long a refused peer may take to read why. */
	lingerMs: 2_000,
	/** Connections open at once, whatever their state: file descriptors. */
	connectionsMax: 16_384,
	/** Connections of one address that have not been admitted yet. */
	unadmittedPerAddressMax: 256,
	/** Live links of one address: many workers may share a NAT. */
	linksPerAddressMax: 256,
	/** Live links of one key: one for each backbone, and a newcomer beside the one it takes over. */
	linksPerKeyMax: 8,
	/** Upgrades admitted in a second. */
	admitRatePerSecond: 20,
	/** The same at once, after a quiet time; grows with the rate. */
	admitBurst: 40,
	/** Attempts of one address in a second: a signature check costs 0.1 ms. */
	attemptRatePerSecond: 10,
	/** The same at once. */
	attemptBurst: 80,
	/** Slices and manifests asked for by one key, and by one address, in a second. */
	sliceRatePerSecond: 20,
	/** The same at once. */
	sliceBurst: 64,
	/** Addresses and keys whose rates are remembered; the longest quiet one is forgotten. */
	ratedPeersMax: 16_384,
	/** Workers that wait at the hub for a parked connection. */
	waitingMax: 256,
	/** Connections that one backbone parks. */
	parkedPerBackboneMax: 64,
	/** Parked connections a relay tries before it gives up: a parked connection may have died unnoticed. */
	parkedTriesMax: 3,
	/** How often relay counters are stored while a link lives (ledger.md section 2). */
	relayStoreMs: 10_000,
	/** How often the gateway looks whether its hub's port is open, worker or not. */
	hubLookMs: 10_000,
	/** How soon a ban ends the links that its key has already. */
	banSweepMs: 5_000,
	/** Seconds of `Retry-After`: drawn from 1 to this, so that a crowd does not come back at once. */
	retryAfterBusySecondsMax: 30,
	/** The same where only the hub or the backbone is away for a moment. */
	retryAfterAwaySecondsMax: 5,
} as const;
