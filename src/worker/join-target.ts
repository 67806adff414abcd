import { keyOf } from "../io/base58.ts";
import { gatewayUrl } from "./dialer.ts";

/** What `kvasir join URL[#KEY]` names. */
export interface JoinTarget {
	readonly url: string;
	/** Host, with the port where it is not the default. */
	readonly gateway: string;
	/** The backbone key after `#`: the only one to believe. */
	readonly backbone: Uint8Array | null;
}

/** Reads a join URL. Throws `usage` for the URL and `bad_key` for the key. */
export function joinTarget(text: string, insecure = false): JoinTarget {
	const url = gatewayUrl(text, insecure);
	const key = url.hash.slice(1);
	return {
		url: `${url.protocol}//${url.host}`,
		gateway: url.host,
		backbone: key === "" ? null : keyOf(decodeURIComponent(key)),
	};
}
