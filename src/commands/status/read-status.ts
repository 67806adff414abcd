import { request } from "undici";
import { z } from "zod";
import { KvasirError } from "../../errors.ts";

const answerMs = 10_000;
const bytes = z.object({ fromWorker: z.number(), toWorker: z.number() });
const link = z.object({ key: z.string(), peer: z.string(), model: z.string(), openedAtMs: z.number(), bytes });
const hub = z.object({ reached: z.boolean().nullable(), reason: z.string().nullable(), sinceMs: z.number() });
const status = z.object({
	startedAtMs: z.number(),
	admission: z.string(),
	draining: z.boolean(),
	/** Absent: an older gateway. */
	hub: hub.optional(),
	linkCount: z.number(),
	links: z.array(link),
});

/** What a gateway's admin address says at `/status`. */
export type GatewayStatus = z.infer<typeof status>;

/** Asks a gateway's admin address. Throws `network` when it does not answer as one. */
export async function readStatus(origin: string, signal: AbortSignal): Promise<GatewayStatus> {
	let body: unknown;
	try {
		const response = await request(`${origin}/status`, { signal, headersTimeout: answerMs, bodyTimeout: answerMs });
		body = await response.body.json();
	} catch (cause) {
		throw new KvasirError("network", `Cannot ask ${origin}: ${(cause as Error).message}`, {
			cause,
			hint: "Is a gateway running here? Its --admin address is asked, which is never the public one",
		});
	}
	const parsed = status.safeParse(body);
	if (parsed.success) return parsed.data;
	throw new KvasirError("network", `Cannot understand ${origin}: not a gateway's status`);
}
