import type { IncomingHttpHeaders } from "node:http";
import { type ErrorCode, KvasirError } from "../errors.ts";

// What stands between a worker and its gateway, as a category with a hint: DNS, TCP, TLS, proxy, auth, version.

const byErrno: readonly [pattern: RegExp, code: ErrorCode, state: string, hint: string][] = [
	[
		/^(ENOTFOUND|EAI_AGAIN|EAI_\w+)$/,
		"dns",
		"its name cannot be resolved",
		"Check the host name and this machine's DNS",
	],
	[/^ECONNREFUSED$/, "refused", "nobody listens there", "Is the gateway running, and is the port right?"],
	[
		/^(ETIMEDOUT|ESOCKETTIMEDOUT)$/,
		"timeout",
		"no answer",
		"A firewall may drop the connection; port 443 must be open outbound",
	],
	[
		/^(CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|ERR_TLS|ERR_SSL|EPROTO|HOSTNAME_MISMATCH)/,
		"tls",
		"its certificate or TLS was not accepted",
		"Behind a proxy that opens TLS, give its certificate with --ca; also check this machine's clock",
	],
];

/** The error of a connection that did not come about. */
export function connectionError(where: string, cause: Error & { code?: string }): KvasirError {
	const errno = cause.code ?? "";
	if (/handshake has timed out/.test(cause.message)) {
		return new KvasirError("timeout", `Cannot connect to ${where}: no answer to the upgrade in time`, { cause });
	}
	if (/proxy/i.test(cause.message)) {
		return new KvasirError("proxy", `Cannot connect to ${where} through the proxy: ${cause.message}`, {
			cause,
			hint: "Check HTTPS_PROXY and NO_PROXY",
		});
	}
	for (const [pattern, code, state, hint] of byErrno) {
		if (pattern.test(errno))
			return new KvasirError(code, `Cannot connect to ${where}: ${state} (${errno})`, { cause, hint });
	}
	return new KvasirError("network", `Cannot connect to ${where}: ${errno || cause.message}`, { cause });
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

/** The error of an HTTP answer that is not 101; `facts.retryAfterMs` where the gateway named a time, `facts.offsetSeconds` for a clock it calls wrong. */
export function upgradeError(
	where: string,
	status: number,
	headers: IncomingHttpHeaders,
	nowSeconds: number,
): KvasirError {
	const facts = { status, retryAfterMs: retryAfterMs(headers["retry-after"]) };
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
	const [code, state, hint] = meaningOf(status);
	return new KvasirError(code, `Cannot join at ${where}: ${state} (HTTP ${status})`, { hint, facts });
}

function meaningOf(status: number): [ErrorCode, string, string] {
	if (status === 401)
		return ["auth", "the gateway does not believe this key", "Is the URL's host the gateway's public host?"];
	if (status === 403) return ["not_admitted", "this key is not admitted", "Ask the swarm's operator for an invitation"];
	if (status === 407) return ["proxy", "the proxy wants a password", "Put user and password in HTTPS_PROXY"];
	if (status === 426) return ["version", "the gateway speaks another version", "Update the older of the two"];
	if (status === 429) return ["refused", "too many joins at once", "It will be tried again"];
	if (status === 502 || status === 504) {
		return [
			"refused",
			"the gateway cannot reach its hub",
			"Its operator: the gateway's log says why; it will be tried again",
		];
	}
	if (status === 503) {
		return ["refused", "no backbone is ready for this worker", "It will be tried again"];
	}
	return ["network", "that is no Kvasir gateway", "Check the URL, and what answers on that port"];
}

/** Seconds, as a gateway of ours sends it; anything else is 0. */
function retryAfterMs(header: string | undefined): number {
	return header !== undefined && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : 0;
}
