import type { IncomingHttpHeaders } from "node:http";
import { type ErrorCode, KvasirError } from "../errors.ts";
import { type Meaning, meaningOfStatus, refusalWords } from "./refusal-words.ts";

// What stands between a worker and its gateway, as a category with a hint: DNS, TCP, TLS, proxy, auth, version.

type Failure = Error & { code?: string; hostname?: string };

const clockHint = "Is this machine's clock right? Else the gateway's operator has to renew the certificate";
const caHint =
	"Behind a proxy that opens TLS, or with an authority of the gateway's own, give its certificate with --ca";
const cutHint =
	"Something on the way cut it: is it the right port, and does it speak TLS (wss://)? A firewall may allow 443 only";

const byErrno: readonly [pattern: RegExp, code: ErrorCode, state: string, hint: string][] = [
	[/^(ENOTFOUND|EAI_\w+)$/, "dns", "its name cannot be resolved", "Check the host name and this machine's DNS"],
	[/^ECONNREFUSED$/, "refused", "nobody listens there", "Is the gateway running, and is the port right?"],
	[
		/^(ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/,
		"timeout",
		"no answer",
		"A firewall may drop the connection; port 443 must be open outbound",
	],
	[/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, "network", "no route leads there", "Is this machine online?"],
	[
		/^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/,
		"tls",
		"its certificate is for another name",
		"Dial the name that the certificate is for; the message behind the code lists it",
	],
	[/^(CERT_HAS_EXPIRED|CERT_NOT_YET_VALID)$/, "tls", "its certificate is not valid at this time", clockHint],
	[/^(CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO)/, "tls", "nobody we trust signed its certificate", caHint],
	[
		/^(ERR_SSL|EPROTO|ERR_TLS)/,
		"tls",
		"no TLS could be agreed on",
		"Does that port speak TLS at all? A gateway on this machine without it is ws://",
	],
	[/^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET)$/, "closed", "the connection was cut before an answer", cutHint],
	[/^(HPE_\w+)$/, "network", "what answers there speaks no HTTP", "Is it wss:// and the right port?"],
];

/** The error of a connection that did not come about. @param proxy `host:port` of the proxy that had not let us through yet, if any */
export function connectionError(where: string, cause: Failure, proxy: string | null = null): KvasirError {
	const errno = cause.code ?? "";
	const tunnel = /Proxy response \((\d{3})\)/.exec(cause.message);
	if (tunnel !== null) return proxyRefusal(where, Number(tunnel[1]));
	if (proxy !== null) return proxyError(where, proxy, cause);
	if (/handshake has timed out/.test(cause.message)) {
		return new KvasirError("timeout", `Cannot connect to ${where}: no answer to the upgrade in time`, {
			cause,
			hint: "A proxy on the way may hold WebSocket upgrades back",
		});
	}
	if (/Sec-WebSocket|subprotocol|Upgrade header/i.test(cause.message)) {
		return new KvasirError("network", `Cannot connect to ${where}: its answer to the upgrade is no gateway's`, {
			cause,
			hint: `Check the URL, and what answers on that port (${cause.message})`,
		});
	}
	for (const [pattern, code, state, hint] of byErrno) {
		if (!pattern.test(errno)) continue;
		const detail = code === "tls" ? `${errno}: ${cause.message.split("\n")[0]?.slice(0, 200)}` : errno;
		return new KvasirError(code, `Cannot connect to ${where}: ${state} (${detail})`, { cause, hint });
	}
	return new KvasirError("network", `Cannot connect to ${where}: ${errno || cause.message}`, {
		cause,
		hint: "kvasir doctor --gateway URL tries each part of the way by itself",
	});
}

/** The proxy itself is not there, or does not speak as one. */
function proxyError(where: string, proxy: string, cause: Failure): KvasirError {
	const errno = cause.code ?? "";
	const known = byErrno.find(([pattern]) => pattern.test(errno));
	const state = known ? `${known[2]} (${errno})` : cause.message;
	return new KvasirError("proxy", `Cannot connect to ${where} through the proxy ${proxy}: ${state}`, {
		cause,
		hint: "Check HTTPS_PROXY; NO_PROXY lists the hosts that are reached without it",
	});
}

/** The error of a proxy that did not connect us; its words are not the gateway's. */
export function proxyRefusal(where: string, status: number): KvasirError {
	const [state, hint] =
		status === 407
			? ["it wants a user and a password", "HTTPS_PROXY=http://user:password@proxy.example:3128"]
			: status === 403 || status === 405
				? ["it does not allow that host or port", "Ask its operator to allow CONNECT to port 443 of the gateway"]
				: ["it could not connect", "Is the gateway's host known to the proxy, and is the gateway running?"];
	return new KvasirError("proxy", `Cannot connect to ${where} through the proxy: ${state} (HTTP ${status})`, {
		hint,
		facts: { status },
	});
}

/** An HTTP answer that is not what was asked for. */
export interface Refused {
	readonly status: number;
	readonly headers: IncomingHttpHeaders;
	/** The beginning of its body. */
	readonly body: string;
}

/**
 * The error of an answer that is not 101. `facts.reason` is the gateway's own word, absent where something else answered;
 * `facts.retryAfterMs` where a time was named, `facts.offsetSeconds` for a clock it calls wrong.
 */
export function upgradeError(
	where: string,
	{ status, headers, body }: Refused,
	nowSeconds: number,
	action: "join at" | "fetch from" = "join at",
): KvasirError {
	const reason = wordOf(body);
	const facts = { status, retryAfterMs: retryAfterMs(headers["retry-after"]), ...(reason && { reason }) };
	const serverSeconds = Number(headers["x-kvasir-time"]);
	if (status === 401 && headers["x-kvasir-time"] !== undefined && Number.isSafeInteger(serverSeconds)) {
		const offsetSeconds = serverSeconds - Math.floor(nowSeconds);
		return new KvasirError(
			"clock_skew",
			`Cannot sign in at ${where}: this machine's clock is ${Math.abs(offsetSeconds)} s off`,
			{
				hint: "Set this machine's clock (NTP)",
				facts: { ...facts, offsetSeconds },
			},
		);
	}
	const [code, state, hint]: Meaning = reason ? refusalWords[reason]! : meaningOfStatus(status, headers.location);
	const said = reason ? `HTTP ${status} ${reason}` : `HTTP ${status}`;
	return new KvasirError(code, `Cannot ${action} ${where}: ${state} (${said})`, { hint, facts });
}

/** The gateway's word in `{"error":{"code"}}`; null where the body is not a gateway's. */
function wordOf(body: string): string | null {
	try {
		const word: unknown = JSON.parse(body)?.error?.code;
		return typeof word === "string" && Object.hasOwn(refusalWords, word) ? word : null;
	} catch {
		return null;
	}
}

/** Seconds, as a gateway of ours sends it; anything else is 0. */
function retryAfterMs(header: string | undefined): number {
	return header !== undefined && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : 0;
}
