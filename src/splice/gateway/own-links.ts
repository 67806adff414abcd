import { addressOf } from "../../io/base58.ts";
import type { Route } from "../http/route.ts";
import type { LiveLinks } from "./live-links.ts";

/** `GET /v1/links`, signed: what the gateway sees of the caller's own links, so that a worker can ask "do you see me?". */
export function ownLinksRoute(links: LiveLinks): Route {
	return {
		method: "GET",
		path: "/v1/links",
		caller: "key",
		handle({ key }) {
			const own = [...links].filter((link) => link.key === addressOf(key!));
			const shown = own.map(({ model, openedAtMs, bytes }) => ({ model, openedAtMs, bytes: bytes() }));
			return { status: 200, json: { links: shown } };
		},
	};
}
