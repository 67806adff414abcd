import { KvasirError } from "../../errors.ts";
import type { KeyPair } from "../../io/crypto.ts";
import type { GatewayClient } from "../../wallet/gateway-client.ts";
import type { Context } from "../program/context.ts";
import { requireSafeUrl } from "../program/insecure.ts";
import { type OptionValues, toggle, value } from "../program/options.ts";
import { path, text } from "../program/readers.ts";
import { passphraseFile, readPassphrase } from "./passphrase.ts";

/** What every command that asks a gateway about a wallet takes. */
export const gatewayOptions = {
	gateway: value("--gateway <url>", "ask this gateway instead of the one that join used last", text),
	ca: value("--ca <file>", "also trust this certificate authority, PEM", path),
	insecure: toggle("--insecure", "allow http:// beyond this machine"),
};

/** Beside it, whose wallet: the home's, or its node key, which has no passphrase. */
export const ownerOptions = {
	...gatewayOptions,
	passphraseFile,
	node: toggle("--node", "the node key's own address, where work is paid that names no wallet"),
};

type GatewayChoice = OptionValues<typeof gatewayOptions>;

/** The gateway that was named, else the one joined last; null: none is known. */
export async function meantGateway(home: string, { gateway, insecure }: GatewayChoice): Promise<string | null> {
	const { rememberedGateway } = await import("../../wallet/remembered-gateway.ts");
	// What join was given with --insecure it may be asked again.
	if (gateway !== undefined) requireSafeUrl(gateway, insecure);
	return gateway ?? rememberedGateway(home);
}

/** Runs `work` with a client of the gateway that is meant. Throws `usage` where none is known. */
export async function withGateway<T>(
	{ home, clock, random, host }: Context,
	options: GatewayChoice,
	work: (client: GatewayClient) => Promise<T>,
): Promise<T> {
	const [{ gatewayClient, originOf }, { openOutboundTo }] = await Promise.all([
		import("../../wallet/gateway-client.ts"),
		import("../program/outbound-to.ts"),
	]);
	const url = await meantGateway(home, options);
	if (url === null) {
		throw new KvasirError("usage", "Cannot ask a gateway: this home never joined one", {
			hint: "Name it: --gateway URL",
		});
	}
	const outbound = await openOutboundTo(originOf(url), host.env, options.ca);
	try {
		return await work(gatewayClient({ gateway: url, clock, random, dispatcher: outbound.dispatcher }));
	} finally {
		await outbound.close();
	}
}

/** The key that signs for a wallet: the home's wallet, opened, or without one (or with `--node`) the node key. */
export async function ownerKey(
	context: Context,
	{ passphraseFile: file, node }: Pick<OptionValues<typeof ownerOptions>, "passphraseFile" | "node">,
): Promise<KeyPair> {
	const { home } = context;
	const [{ unlockWallet, walletAddress }, { loadNodeKey }] = await Promise.all([
		import("../../wallet/wallet-key.ts"),
		import("../../wallet/node-key.ts"),
	]);
	if (node || (await walletAddress(home)) === null) return loadNodeKey(home);
	return unlockWallet(home, await readPassphrase(context, file, "open"));
}
