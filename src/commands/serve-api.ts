import { startApi } from "../backbone/api-server.ts";
import { createBackboneMetrics } from "../backbone/backbone-metrics.ts";
import { KvasirError } from "../errors.ts";
import { readSmallFile } from "../io/files.ts";
import type { Outcome } from "./command.ts";
import type { Context } from "./context.ts";
import { isLoopback } from "./insecure.ts";
import { listenAt } from "./listen-at.ts";
import type { DispatchRoom } from "./open-dispatch.ts";
import { formatHostPort, type HostPort } from "./readers.ts";
import { untilStopped } from "./until-stopped.ts";

const keyFileBytesMax = 65_536;

/** Serves the OpenAI-style API until the command is stopped. Throws `usage` for an address beyond this machine without keys. */
export async function serveApi(
	context: Context,
	{ decode, backbone, tokenizer, metadata }: DispatchRoom,
	{ api, keyFile }: { api: HostPort; keyFile: string | undefined },
): Promise<Outcome<never>> {
	const { clock, random, log } = context;
	const keys = keyFile === undefined ? [] : await readKeys(keyFile);
	if (keys.length === 0 && !isLoopback(api.host ?? "0.0.0.0")) {
		throw new KvasirError("usage", `Cannot serve the API on ${formatHostPort(api)}: anybody could use it`, {
			hint: "Name keys with --api-key-file, or listen on 127.0.0.1",
		});
	}
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
		listen: listenAt(api),
		keys,
		metrics: () => metrics.metrics(),
		...{ clock, random, log },
	});
	const { port } = server.address;
	context.emit({ event: "api", port }, `API: http://${formatHostPort({ host: api.host, port })}/v1`);
	await untilStopped(context);
	await server.close();
	return {};
}

async function readKeys(path: string): Promise<string[]> {
	const bytes = await readSmallFile(path, keyFileBytesMax);
	if (bytes === null) throw new KvasirError("file_missing", `Cannot read the API keys ${path}: no such file`);
	const keys = bytes
		.toString("utf8")
		.split(/\r?\n/)
		.map((line) => line.trim())
		.filter(Boolean);
	if (keys.length > 0) return keys;
	throw new KvasirError("usage", `Cannot use the API keys ${path}: the file is empty`);
}
