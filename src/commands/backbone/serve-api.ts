import { parseApiKeys } from "../../backbone/api/api-http.ts";
import { startApi } from "../../backbone/api/api-server.ts";
import { createBackboneMetrics } from "../../backbone/backbone-metrics.ts";
import { KvasirError } from "../../errors.ts";
import { readSmallFile } from "../../io/files.ts";
import type { Context } from "../program/context.ts";
import { isLoopback } from "../program/insecure.ts";
import { listenAt } from "../program/listen-at.ts";
import { formatHostPort, type HostPort } from "../program/readers.ts";
import type { DispatchRoom } from "./open-dispatch.ts";

const keyFileBytesMax = 65_536;

/** The API that is open, and how to end it. */
export interface OpenApi {
	readonly port: number;
	readonly url: string;
	close(): Promise<void>;
}

/** The keys of an API at this address. Throws `usage` for an address beyond this machine without keys, and for a file without any. */
export async function readApiKeys(listen: HostPort, path: string | undefined): Promise<readonly string[]> {
	if (path !== undefined) return readKeyFile(path);
	if (isLoopback(listen.host ?? "0.0.0.0")) return [];
	throw new KvasirError("usage", `Cannot serve the API on ${formatHostPort(listen)}: anybody could use it`, {
		hint: "Name keys with --api-key-file, or listen on 127.0.0.1",
	});
}

/** Serves the OpenAI-style API. Throws `network` when it cannot listen. */
export async function openApi(
	{ clock, random, log }: Context,
	{ decode, backbone, tokenizer, metadata }: DispatchRoom,
	{ listen, keys }: { readonly listen: HostPort; readonly keys: readonly string[] },
): Promise<OpenApi> {
	const metrics = createBackboneMetrics(backbone);
	const server = await startApi({
		model: {
			name: decode.facts.name,
			contextLength: decode.facts.shape.contextLength,
			metadata,
			tokenizer,
			generate: (request, hooks) => decode.generate(request, hooks),
			isTainted: (sequence) => backbone.isTainted(sequence),
		},
		listen: listenAt(listen),
		keys,
		metrics: () => metrics.metrics(),
		...{ clock, random, log },
	});
	const { port } = server.address;
	return { port, url: `http://${formatHostPort({ host: listen.host, port })}/v1`, close: () => server.close() };
}

async function readKeyFile(path: string): Promise<readonly string[]> {
	const bytes = await readSmallFile(path, keyFileBytesMax);
	if (bytes === null) throw new KvasirError("file_missing", `Cannot read the API keys ${path}: no such file`);
	const keys = parseApiKeys(bytes.toString("utf8"));
	if (keys.length > 0) return keys;
	throw new KvasirError("usage", `Cannot use the API keys ${path}: the file has none`);
}
