import { request } from "undici";
import type { Clock } from "../io/clock.ts";
import { httpDateMs } from "../io/http-date.ts";
import type { Check } from "./check.ts";

const skewMsMax = 30_000;
const answerMs = 10_000;

/** A gateway answers over HTTP, and its clock and ours agree well enough for signatures. */
export function gatewayCheck(url: string, clock: Clock): Check {
	return {
		name: "gateway",
		async run(signal) {
			const address = new URL("/v1/relay", url.replace(/^ws/, "http"));
			const sentMs = clock.now();
			const { statusCode, headers, body } = await request(address, { signal, headersTimeout: answerMs });
			await body.dump();
			// What an upgrade-only path says to a plain GET: it is a gateway.
			if (statusCode !== 426) {
				return {
					state: "failed",
					found: `${address.origin} answered ${statusCode}, not as a gateway`,
					hint: "Is something else listening there, or a proxy in between?",
				};
			}
			const datedMs = httpDateMs(String(headers.date ?? ""));
			const skewMs = Math.abs((datedMs ?? sentMs) - sentMs);
			const found = `${address.origin} is a gateway, clocks ${Math.round(skewMs / 1000)} s apart`;
			return skewMs > skewMsMax
				? { state: "failed", found, hint: "Set this machine's clock: signatures are refused after 60 s" }
				: { state: "ok", found };
		},
	};
}
