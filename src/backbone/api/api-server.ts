import http, { type IncomingMessage, type ServerResponse } from "node:http";
import { KvasirError } from "../../errors.ts";
import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import type { Random } from "../../io/random.ts";
import { type ListenAddress, listen } from "../links/listen.ts";
import type { ApiModel } from "./api-generate.ts";
import { createApiGate, failureOf, readJson, sendFailure, sendJson } from "./api-http.ts";
import { answerJob, chatJob, completionJob } from "./api-job.ts";

const headMs = 10_000;
/** From a connection's first byte to a request's last: a long prompt over a slow line. */
const requestMs = 60_000;
const connectionsMax = 1024;
/** How long streams may take to say that they end when the API closes. */
const lingerMs = 1_000;

export interface ApiOptions {
	readonly model: ApiModel;
	readonly listen: ListenAddress;
	/** Empty: only requests addressed to localhost. */
	readonly keys: readonly string[];
	/** `GET /metrics`, in Prometheus' text format; absent: 404. */
	readonly metrics?: () => Promise<string>;
	readonly clock: Clock;
	readonly random: Random;
	readonly log: Logger;
}

/** A running OpenAI-style API. */
export interface ApiServer {
	readonly address: ListenAddress;
	/** Aborts what is being generated, ends every connection. */
	close(): Promise<void>;
}

/** Serves `/v1/models`, `/v1/completions`, `/v1/chat/completions`; requests are decoded together. Throws `network` when it cannot listen. */
export async function startApi(options: ApiOptions): Promise<ApiServer> {
	const { model, clock, log } = options;
	const closing = new AbortController();
	const parts = { model, clock, random: options.random, closing: closing.signal };
	const admit = createApiGate(options.keys);
	const described = { id: model.name, object: "model", created: Math.floor(clock.now() / 1000), owned_by: "kvasir" };
	const server = http.createServer({ headersTimeout: headMs, requestTimeout: requestMs, noDelay: true });
	server.maxConnections = connectionsMax;

	async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
		admit(request);
		const target = `${request.method} ${(request.url ?? "").split("?", 1)[0]}`;
		switch (target) {
			case "GET /health":
				return sendJson(response, 200, { status: "ok" });
			case "GET /v1/models":
				return sendJson(response, 200, { object: "list", data: [described] });
			case `GET /v1/models/${encodeURIComponent(model.name)}`:
				return sendJson(response, 200, described);
			case "POST /v1/completions":
				return answerJob(await completionJob(await readJson(request), model, options.clock), response, parts);
			case "POST /v1/chat/completions":
				return answerJob(await chatJob(await readJson(request), model, options.clock), response, parts);
			case "GET /metrics":
				if (options.metrics === undefined) break;
				response.writeHead(200, { "content-type": "text/plain; version=0.0.4" });
				response.end(await options.metrics());
				return;
		}
		throw new KvasirError("model_missing", `Cannot answer: there is no ${target.slice(0, 200)}`);
	}

	server.on("request", (request, response) => {
		request.on("error", () => {});
		response.on("error", () => {});
		route(request, response).catch((error) => {
			const failure = failureOf(error);
			if (failure.status === 500) log.error({ error: String(error) }, "API request failed");
			// What is left of the body is not read, so nothing can follow it on this connection.
			if (!request.complete) response.shouldKeepAlive = false;
			if (response.headersSent) response.destroy();
			else sendFailure(response, failure);
		});
	});
	server.on("clientError", (_, socket) => socket.destroy());
	const address = await listen({ http: server }, options.listen);
	return {
		address,
		async close() {
			closing.abort(new KvasirError("closed", "Cannot answer: the backbone is closing"));
			const cancelTimer = clock.after(lingerMs, () => server.closeAllConnections());
			await new Promise<void>((resolve) => {
				server.close(() => resolve());
				server.closeIdleConnections();
			});
			cancelTimer();
		},
	};
}
