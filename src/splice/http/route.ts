/** Who may call a route: the holder of the gateway-hub secret, a listed backbone, any key that signs, or anybody. */
export type CallerKind = "gateway" | "backbone" | "key" | "anyone";

/** One request, authenticated as its route demands, its body read and bounded. */
export interface RouteRequest {
	readonly params: Readonly<Record<string, string>>;
	readonly query: URLSearchParams;
	readonly body: Uint8Array;
	/** 32 bytes, proved, where the caller is a backbone or a key. */
	readonly key: Uint8Array | null;
	/** Aborts when the caller goes away or the server closes: long polls end. */
	readonly signal: AbortSignal;
}

/** The answer: a JSON value, or text of a stated type. */
export interface RouteAnswer {
	readonly status: number;
	readonly json?: unknown;
	readonly text?: string;
	readonly type?: string;
	readonly headers?: Readonly<Record<string, string>>;
}

/** One route; `path` may have `:name` segments. */
export interface Route {
	readonly method: "GET" | "POST";
	readonly path: string;
	readonly caller: CallerKind;
	handle(request: RouteRequest): RouteAnswer | Promise<RouteAnswer>;
}

/** An error's answer: `{"error":{"code","message"}}`. */
export function failure(status: number, code: string, message: string): RouteAnswer {
	return { status, json: { error: { code, message } } };
}
