import type { IncomingMessage } from "node:http";
import { addressOf } from "../../io/base58.ts";
import type { Clock } from "../../io/clock.ts";
import type { Random } from "../../io/random.ts";
import { authorizationOfSubprotocols, checkAuthorization } from "../../protocol/authorization.ts";
import type { NonceCache } from "../../protocol/nonce-cache.ts";
import { spliceLimits } from "../limits.ts";
import { later, type Refusal, type RefusalReason, timeHeader } from "../refusals.ts";
import type { WorkerTarget } from "../targets.ts";
import type { Admission } from "./admission.ts";
import { type Counted, createCounted } from "./counted.ts";
import { limitNameOf } from "./peer-address.ts";
import { createKeyedBuckets, createTokenBucket, type Rate } from "./token-bucket.ts";

/** Limits that an operator may set. */
export interface AdmitLimits {
	readonly admitRatePerSecond: number;
	/** Manifests and slices, for one key and for one address. */
	readonly sliceRatePerSecond: number;
	readonly linksPerKeyMax: number;
	readonly linksPerAddressMax: number;
	/** From the start of a connection to its complete request head, milliseconds. */
	readonly headMs: number;
}

export const defaultAdmitLimits: AdmitLimits = {
	headMs: spliceLimits.headMs,
	admitRatePerSecond: spliceLimits.admitRatePerSecond,
	sliceRatePerSecond: spliceLimits.sliceRatePerSecond,
	linksPerKeyMax: spliceLimits.linksPerKeyMax,
	linksPerAddressMax: spliceLimits.linksPerAddressMax,
};

export interface AdmitParts {
	/** The hosts that workers dial and sign, first one first. */
	publicHosts(): readonly string[];
	readonly admission: Admission;
	readonly limits: AdmitLimits;
	readonly clock: Clock;
	readonly random: Random;
	readonly nonces: NonceCache;
}

/** Let in: the proved key, and the function that gives its places back. */
export interface AdmittedWorker {
	readonly key: Uint8Array;
	release(): void;
}

/** The order in which a stranger is checked: cheap and per address first, so that one bad address spends only its own quota. */
export interface Admitter {
	/** For a link that will live. */
	link(request: IncomingMessage, target: Pick<WorkerTarget, "model">, peer: string): Promise<AdmittedWorker | Refusal>;
	/** For one manifest or slice. */
	slice(request: IncomingMessage, target: WorkerTarget, peer: string): Promise<AdmittedWorker | Refusal>;
	/** For one request that no key has to prove; null when it may go on. */
	plain(peer: string): Refusal | null;
	/** Live links by the name of their address (limitNameOf). */
	readonly addresses: Counted;
}

export function createAdmitter(parts: AdmitParts): Admitter {
	const { admission, limits, clock, random } = parts;
	const attempts = createKeyedBuckets(
		{ perSecond: spliceLimits.attemptRatePerSecond, burst: spliceLimits.attemptBurst },
		clock,
		spliceLimits.ratedPeersMax,
	);
	const slices = createKeyedBuckets(
		rateOf(limits.sliceRatePerSecond, spliceLimits.sliceBurst / spliceLimits.sliceRatePerSecond),
		clock,
		spliceLimits.ratedPeersMax,
	);
	const plain = createKeyedBuckets(
		{ perSecond: spliceLimits.attemptRatePerSecond, burst: spliceLimits.attemptBurst },
		clock,
		spliceLimits.ratedPeersMax,
	);
	const admitBurstSeconds = spliceLimits.admitBurst / spliceLimits.admitRatePerSecond;
	const upgrades = createTokenBucket(rateOf(limits.admitRatePerSecond, admitBurstSeconds), clock);
	const keys = createCounted(limits.linksPerKeyMax);
	const addresses = createCounted(limits.linksPerAddressMax);

	const busy = (reason: RefusalReason) => later(reason, random);

	async function prove(
		request: IncomingMessage,
		{ model }: Pick<WorkerTarget, "model">,
	): Promise<Uint8Array | Refusal> {
		const check = authenticate(request, model, parts);
		if (!check.ok) {
			const headers = check.reason === "skew" ? timeHeader(clock) : {};
			return { reason: check.reason, headers };
		}
		const invite = request.headers["x-kvasir-invite"];
		const admitted = await admission.check(addressOf(check.key), typeof invite === "string" ? invite : undefined);
		if (admitted.ok) return check.key;
		return admitted.reason === "admission_unavailable" ? later(admitted.reason, random) : { reason: admitted.reason };
	}

	return {
		addresses,
		async link(request, target, peer) {
			if (!attempts.take(limitNameOf(peer))) return busy("attempts_per_address");
			const key = await prove(request, target);
			if (!(key instanceof Uint8Array)) return key;
			const name = limitNameOf(peer);
			const releaseAddress = addresses.take(name);
			if (releaseAddress === null) return busy("links_per_address");
			const releaseKey = keys.take(addressOf(key));
			const release = () => {
				releaseKey?.();
				releaseAddress();
			};
			// The rate is everybody's: nobody spends it who is refused for a reason of his own.
			const refusal = releaseKey === null ? "links_per_key" : upgrades.take() ? null : "admit_rate";
			if (refusal === null) return { key, release };
			release();
			return busy(refusal);
		},
		async slice(request, target, peer) {
			if (!slices.take(limitNameOf(peer))) return busy("slices_per_address");
			const key = await prove(request, target);
			if (!(key instanceof Uint8Array)) return key;
			if (!slices.take(addressOf(key))) return busy("slices_per_key");
			return { key, release() {} };
		},
		plain: (peer) => (plain.take(limitNameOf(peer)) ? null : busy("requests_per_address")),
	};
}

/** A rate whose burst grows with it, and lets one through at least. */
function rateOf(perSecond: number, burstSeconds: number): Rate {
	return { perSecond, burst: Math.max(1, perSecond * burstSeconds) };
}

function authenticate(request: IncomingMessage, model: string, { publicHosts, clock, nonces }: AdmitParts) {
	const { headers } = request;
	const authorization = headers.authorization ?? authorizationOfSubprotocols(headers["sec-websocket-protocol"]);
	const hosts = publicHosts();
	// The received Host only chooses among our own names; it is never believed.
	const host = hosts.find((one) => one.toLowerCase() === headers.host?.toLowerCase()) ?? hosts[0] ?? "";
	return checkAuthorization(authorization, { label: "kvasir/1 relay", host, model }, { clock, nonces });
}
