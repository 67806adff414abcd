/** What a worker tells about itself as it happens: for a log line, NDJSON or a screen's notes. Keys are base58. */
export type WorkerEvent =
	/** `bytesTotal` is 0 where experts are read from a file. */
	| { readonly event: "loading"; readonly done: number; readonly total: number; readonly bytesTotal: number }
	/** Bytes of slices that came over the gateway so far. */
	| { readonly event: "fetched"; readonly bytes: number }
	| { readonly event: "fetch_retry"; readonly code: string; readonly message: string; readonly inMs: number }
	/** Something is in the way, and what is held is served on: a full disk, a slice that is wrong. */
	| { readonly event: "problem"; readonly code: string; readonly message: string; readonly hint: string | null }
	| { readonly event: "holding"; readonly experts: number; readonly bytes: number }
	| { readonly event: "connecting"; readonly gateway: string; readonly backbone: string | null }
	| { readonly event: "connected"; readonly backbone: string; readonly model: string; readonly session: string }
	/** `code` is an error code (dns, tls, proxy, auth, ...), or a close code's name. */
	| {
			readonly event: "disconnected";
			readonly code: string;
			readonly message: string;
			readonly hint: string | null;
			/** The gateway's own word for a refusal, such as `hub_dial` or `no_backbone` (docs/operating.md); null where it said none. */
			readonly reason: string | null;
			readonly redialInMs: number | null;
	  }
	| {
			readonly event: "receipt";
			readonly backbone: string;
			readonly number: number;
			readonly pairs: number;
			readonly servedBytes: number;
			readonly agreed: boolean;
			readonly unpaid: Readonly<Record<string, number>>;
	  }
	| { readonly event: "clock_skew"; readonly offsetSeconds: number }
	| { readonly event: "draining"; readonly reason: string };
