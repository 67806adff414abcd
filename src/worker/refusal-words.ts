import type { ErrorCode } from "../errors.ts";

/** What a gateway's word for a refusal means to a worker: a code, a state for `Cannot join at X: <state>`, and what helps. */
export type Meaning = readonly [code: ErrorCode, state: string, hint: string];

const again = "It will be tried again";
const upgradesLost = "A proxy on the way does not pass WebSocket upgrades on: its operator has to let them through";
const changed = "A proxy on the way may change requests: its operator has to pass them on as they are";
const askInvite = "Ask the swarm's operator for an invite, and join with --invite-file FILE";
const operatorHub = `The gateway's operator has to look: kvasir status, and is the hub running where --hub says? ${again}`;
const unreached: Meaning = ["refused", "the gateway does not reach its hub", operatorHub];
const unpaired: Meaning = [
	"refused",
	"the gateway reaches its hub, but the two do not believe each other",
	`The gateway's operator has to compare --hub-secret-file and the clocks of gateway and hub. ${again}`,
];
const busy = (what: string): Meaning => ["refused", what, again];
const older = (what: string): Meaning => ["version", what, "Update the older of the two"];
const odd = (what: string): Meaning => ["network", what, changed];

/**
 * The words of a gateway's fixed table (src/splice/refusals.ts) that a worker can be told. Only codes that ask for a person end a
 * command at the first contact; everything else is tried again.
 */
export const refusalWords: Readonly<Record<string, Meaning>> = {
	not_http: odd("the gateway got no HTTP"),
	body: odd("the request came with a body that was not sent"),
	websocket_key: odd("the request came without a valid Sec-WebSocket-Key"),
	model: ["usage", "the model's name is none", "Names are letters, digits, '.', '_' and '-'"],
	backbone: ["usage", "the backbone's key is none", "Copy the URL with its #KEY again"],
	missing: ["auth", "the request came without its Authorization", changed],
	malformed: older("the gateway does not know this kind of Authorization"),
	signature: [
		"auth",
		"the gateway does not believe this key: it was signed for another host",
		"Dial the gateway by its public host, with its port unless it is 443; its operator: --public-host names what workers dial",
	],
	skew: ["clock_skew", "this machine's clock is off", "Set this machine's clock (NTP)"],
	replay: ["refused", "this very request was there before", changed],
	banned: ["not_admitted", "this key is banned", "Ask the swarm's operator: kvasir gateway unban KEY"],
	not_listed: [
		"not_admitted",
		"this key is not on the gateway's list",
		"Ask the swarm's operator: kvasir gateway allow KEY",
	],
	invite_missing: ["not_admitted", "this gateway lets a new key in only with an invite", askInvite],
	invite_unknown: ["not_admitted", "the gateway does not know this invite", askInvite],
	invite_used: ["not_admitted", "this invite was used by another key", askInvite],
	invite_expired: ["not_admitted", "this invite has expired", askInvite],
	path: older("the gateway does not know this path"),
	method: odd("the request came with another method"),
	slow: ["timeout", "the gateway did not get the whole request in time", `Is the path very slow? ${again}`],
	target: odd("the request's path came longer than it was sent"),
	upgrade: ["proxy", "the request came without its WebSocket upgrade", upgradesLost],
	websocket_version: older("the gateway speaks another version of WebSocket"),
	subprotocol: older("the gateway speaks another version"),
	attempts_per_address: busy("this address tries too often"),
	requests_per_address: busy("this address asks too often"),
	slices_per_address: busy("this address asks for slices too often"),
	slices_per_key: busy("this key asks for slices too often"),
	links_per_address: busy("this address has as many links as one may have"),
	links_per_key: busy("this key has as many links as one may have"),
	admit_rate: busy("too many join at once"),
	head: odd("the request's head came too long"),
	hub_refused: unpaired,
	hub_accept: ["refused", "what the gateway reaches is no hub", operatorHub],
	hub_dial: unreached,
	hub_closed: unreached,
	hub_timeout: unreached,
	hub_malformed: unreached,
	draining: busy("the gateway is restarting"),
	no_backbone: [
		"refused",
		"the gateway reaches its hub, but no backbone is ready there for this worker",
		`Is the swarm's backbone running, for this model? ${again}`,
	],
	model_needed: [
		"usage",
		"several models are served behind this gateway",
		"Say which one: --swarm-model NAME; its operator knows their names",
	],
	not_ready: [
		"refused",
		"nobody is ready yet to send this model's experts",
		`A backbone reads its whole file before it sends the first one. ${again}`,
	],
	admission_unavailable: busy("the gateway cannot read its admission lists"),
	internal: busy("the gateway failed at this request: its log says why"),
};

/** What an answer means that is not in the gateway's own words: something in front of it spoke, or something else listens there. */
export function meaningOfStatus(status: number, location: string | undefined): Meaning {
	const portal =
		"Does this network want a sign-in first (open a browser)? Else check the URL, and what answers on that port";
	if (status >= 300 && status < 400) {
		const to = location === undefined ? "" : ` to ${location.slice(0, 128)}`;
		return ["network", `it redirects${to}, which no Kvasir gateway does`, portal];
	}
	if (status >= 200 && status < 300) return ["network", "a web server answers, not a Kvasir gateway", portal];
	if (status === 407)
		return ["proxy", "a proxy wants a user and a password", "HTTPS_PROXY=http://user:password@HOST:PORT"];
	if (status === 426) return older("what answers speaks another version");
	if (status === 429) return busy("something in front of the gateway is asked too often");
	if (status === 401 || status === 403) {
		return [
			"network",
			"something in front of the gateway, or another server, refuses",
			"A filter on the way may block it: its operator has to allow WebSocket upgrades to this host. Else check the URL",
		];
	}
	if (status >= 502 && status <= 504) {
		return [
			"refused",
			"what stands in front of the gateway does not reach it",
			`Its operator: is the gateway running behind the proxy? ${again}`,
		];
	}
	return ["network", "that is no Kvasir gateway", "Check the URL, and what answers on that port"];
}
