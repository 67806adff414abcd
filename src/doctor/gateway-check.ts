import http from "node:http";
import https from "node:https";
import type { PeerCertificate, TLSSocket } from "node:tls";
import type { Clock } from "../io/clock.ts";
import { httpDateMs } from "../io/http-date.ts";
import type { Outbound } from "../io/outbound.ts";
import { connectionError, proxyRefusal } from "../worker/dial-error.ts";
import type { Check, Finding } from "./check.ts";

const skewMsMax = 30_000;
const answerMs = 10_000;
/** A certificate that ends sooner is worth a word. */
const expiryMsMin = 14 * 86_400_000;

export interface GatewayParts {
	/** `wss://host[:port]`, or http(s). */
	readonly url: string;
	readonly outbound: Outbound;
	readonly clock: Clock;
}

interface Answer {
	readonly status: number;
	readonly date: string;
	readonly certificate: PeerCertificate | null;
	readonly tls: string | null;
}

/** Whether there is a proxy between this machine and the gateway, and that it lets us through. */
export function proxyCheck(parts: GatewayParts): Check {
	return {
		name: "proxy",
		async run(signal) {
			const { proxy } = parts.outbound;
			if (proxy === null) return { state: "ok", found: "none named by HTTPS_PROXY: dialled directly" };
			await ask(parts, signal);
			return { state: "ok", found: `${proxy} connects us to ${new URL(parts.url).host}` };
		},
	};
}

/** Whom the gateway's certificate is from, and until when. */
export function tlsCheck(parts: GatewayParts): Check {
	return {
		name: "tls",
		async run(signal) {
			const { certificate, tls } = await ask(parts, signal);
			if (certificate === null) {
				return {
					state: "warning",
					found: "no TLS: what is sent can be read on the way",
					hint: "Use wss:// beyond your own network",
				};
			}
			return certificateFinding(certificate, tls ?? "TLS", parts.clock.now());
		},
	};
}

/** What a certificate that was accepted says. */
function certificateFinding(
	{ subject, issuer, valid_to: until }: PeerCertificate,
	tls: string,
	nowMs: number,
): Finding {
	const name = (part: PeerCertificate["subject"] | undefined) => String(part?.CN ?? part?.O ?? "unnamed");
	const found = `${tls}, ${name(subject)} by ${name(issuer)}, until ${until}`;
	return (httpDateMs(until) ?? 0) - nowMs > expiryMsMin
		? { state: "ok", found }
		: { state: "warning", found, hint: "The gateway's certificate ends soon: its operator should renew it" };
}

/** A gateway answers over HTTP, and its clock and ours agree well enough for signatures. */
export function gatewayCheck(parts: GatewayParts): Check {
	return {
		name: "gateway",
		async run(signal) {
			const { clock, url } = parts;
			const sentMs = clock.now();
			const { status, date } = await ask(parts, signal);
			const { host } = new URL(url);
			// What an upgrade-only path says to a plain GET: it is a gateway.
			if (status !== 426) {
				return {
					state: "failed",
					found: `${host} answered ${status}, not as a gateway`,
					hint: "Is something else listening there, or a proxy in between?",
				};
			}
			const skewMs = Math.abs((httpDateMs(date) ?? sentMs) - sentMs);
			const found = `${host} is a gateway, clocks ${Math.round(skewMs / 1000)} s apart`;
			return skewMs > skewMsMax
				? { state: "failed", found, hint: "Set this machine's clock: signatures are refused after 60 s" }
				: { state: "ok", found };
		},
	};
}

/** GET of the upgrade's path. Throws `dns`, `refused`, `timeout`, `tls`, `proxy`, `network`. */
function ask({ url, outbound, clock }: GatewayParts, signal: AbortSignal): Promise<Answer> {
	const target = new URL("/v1/relay", url.replace(/^ws/, "http"));
	return new Promise((resolve, reject) => {
		let answered: number | null = null;
		const agent = outbound.agent((status) => {
			answered = status;
		});
		const options = { signal, ...(agent && { agent }), ...outbound.tls };
		const request = (target.protocol === "https:" ? https : http).get(target, options, (response) => {
			const socket = response.socket as TLSSocket;
			response.resume();
			cancel();
			if (answered !== null && answered !== 200) return void reject(proxyRefusal(target.host, answered));
			resolve({
				status: response.statusCode ?? 0,
				date: response.headers.date ?? "",
				certificate: typeof socket.getPeerCertificate === "function" ? socket.getPeerCertificate() : null,
				tls: typeof socket.getProtocol === "function" ? socket.getProtocol() : null,
			});
		});
		const cancel = clock.after(answerMs, () =>
			request.destroy(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })),
		);
		request.on("error", (error: Error & { code?: string }) => {
			cancel();
			reject(connectionError(target.host, error, answered === null ? outbound.proxy : null));
		});
	});
}
