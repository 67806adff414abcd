/**
 * Every code an error of Kvasir can carry, with the exit code of a command that ends with it
 * (spec: 0 ok, 1 failed, 2 usage, 3 verify: different, 4 network, 5 auth or identity, 6 version,
 * 7 GPU not available, 8 model or file, 9 payment or ledger). docs/errors.md lists the same table; a test compares them.
 */
export const exitCodes = {
	// 1: failed
	failed: 1,
	internal: 1,
	incomplete: 1,
	non_finite: 1,
	engine_failed: 1,
	remote_required: 1,
	disk_full: 1,
	out_of_memory: 1,
	// 2: usage
	usage: 2,
	config: 2,
	home_in_use: 2,
	// 3: verify
	different: 3,
	// 4: network
	network: 4,
	timeout: 4,
	proxy: 4,
	tls: 4,
	dns: 4,
	refused: 4,
	closed: 4,
	malformed: 4,
	bounds: 4,
	// 5: auth or identity
	auth: 5,
	key_changed: 5,
	not_admitted: 5,
	key_in_use: 5,
	clock_skew: 5,
	bad_key: 5,
	passphrase: 5,
	// 6: version
	version: 6,
	// 7: GPU
	gpu_unavailable: 7,
	// 8: model or file
	file_missing: 8,
	bad_gguf: 8,
	bad_weights: 8,
	bad_file: 8,
	unsupported_type: 8,
	unsupported_shape: 8,
	unsupported_architecture: 8,
	model_missing: 8,
	model_mismatch: 8,
	// 9: payment or ledger
	bad_receipt: 9,
	conflict: 9,
	diverged: 9,
	ledger: 9,
	payment: 9,
} as const;

export type ErrorCode = keyof typeof exitCodes;

/**
 * The one error class. `message` reads `Cannot <action>: <state>` without a final period;
 * `hint` names the next command or setting to try; `facts` are the values involved, for JSON.
 */
export class KvasirError extends Error {
	readonly code: ErrorCode;
	readonly hint: string | undefined;
	readonly facts: Readonly<Record<string, unknown>>;

	constructor(
		code: ErrorCode,
		message: string,
		options: { hint?: string; cause?: unknown; facts?: Record<string, unknown> } = {},
	) {
		super(message, options.cause === undefined ? undefined : { cause: options.cause });
		this.name = "KvasirError";
		this.code = code;
		this.hint = options.hint;
		this.facts = options.facts ?? {};
	}

	/** The process exit code of a command that ends with this error. */
	get exitCode(): number {
		return exitCodes[this.code];
	}
}

/** An error as plain data, to cross a thread, a process or a wire. */
export interface PlainError {
	readonly code: ErrorCode;
	readonly message: string;
	readonly hint?: string;
	readonly facts?: Readonly<Record<string, unknown>>;
}

/** Any thrown value as plain data; what is not a KvasirError becomes `internal`. */
export function plainError(thrown: unknown): PlainError {
	if (!(thrown instanceof KvasirError)) {
		return { code: "internal", message: thrown instanceof Error ? thrown.message : String(thrown) };
	}
	const { code, message, hint, facts } = thrown;
	return hint === undefined ? { code, message, facts } : { code, message, hint, facts };
}

/** The other way round. */
export function errorFromPlain({ code, message, hint, facts }: PlainError): KvasirError {
	return new KvasirError(code, message, {
		...(hint === undefined ? {} : { hint }),
		...(facts === undefined ? {} : { facts }),
	});
}
