import { join } from "node:path";
import { onTestFinished } from "vitest";
import { addressOf } from "../../src/io/base58.ts";
import { systemClock } from "../../src/io/clock.ts";
import { type Child, startChild } from "../../src/swarm/child.ts";
import { loadNodeKey } from "../../src/wallet/node-key.ts";
import { cleanEnv, cliPath } from "./run-cli.ts";

/** How a process of a test swarm is started where the swarm's own starter decides too much: fixed ports, other words, namespaces. */
export interface PartOptions {
	readonly args?: readonly string[];
	readonly env?: Readonly<Record<string, string>>;
	/** A program and words to start it under, such as `ip netns exec NAME`. */
	readonly under?: readonly string[];
}

/** One process of the built command line with a home of its own below `home`; it is stopped when the test is over. */
export async function startPart(
	home: string,
	name: string,
	words: readonly string[],
	options: PartOptions = {},
): Promise<Child> {
	const [program = process.execPath, ...before] = options.under ?? [];
	const args = options.under === undefined ? [] : [process.execPath, cliPath];
	const child = await startChild(
		name,
		[
			...(options.under === undefined ? [] : [...before.slice(1), ...args]),
			...words,
			...(options.args ?? []),
			"--home",
			join(home, name),
		],
		{
			execPath: program,
			cliPath: options.under === undefined ? cliPath : before[0]!,
			env: cleanEnv(options.env),
			clock: systemClock,
		},
	);
	onTestFinished(() => child.stop());
	return child;
}

/** The base58 key of the backbone whose home is `name`. */
async function partKey(home: string, name = "backbone"): Promise<string> {
	return addressOf((await loadNodeKey(join(home, name))).publicKey);
}

export async function startHubPart(
	home: string,
	{ relay = "127.0.0.1:0", api = "127.0.0.1:0" } = {},
	options: PartOptions = {},
) {
	const secret = join(home, "hub-secret");
	const key = await partKey(home);
	const words = ["serve-hub", "--relay", relay, "--api", api, "--secret-file", secret, "--backbone-key", key];
	const child = await startPart(home, "hub", words, options);
	const hostOf = (address: string) => address.slice(0, address.lastIndexOf(":"));
	return {
		child,
		relay: `${hostOf(relay)}:${child.listening.relayPort}`,
		api: `${hostOf(api)}:${child.listening.apiPort}`,
	};
}

export async function startGatewayPart(
	home: string,
	hub: { relay: string; api: string },
	{ listen = "127.0.0.1:0", tls = ["--plain"] as readonly string[] } = {},
	options: PartOptions = {},
) {
	const secret = join(home, "hub-secret");
	const words = ["serve-gateway", "--listen", listen, ...tls, "--admin", "127.0.0.1:0"];
	const child = await startPart(
		home,
		"gateway",
		[...words, "--hub", hub.relay, "--hub-api", hub.api, "--hub-secret-file", secret],
		options,
	);
	return { child, port: Number(child.listening.port) };
}
