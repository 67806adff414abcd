import type { Backbone } from "../../backbone/backbone.ts";
import { KvasirError } from "../../errors.ts";
import type { Context } from "../program/context.ts";
import { untilStopped } from "../program/until-stopped.ts";

/**
 * Waits until a connection is parked at the hub, or the command is stopped. Throws `auth` where the hub does not list our key, and
 * where the hub is `required` also that it cannot be reached.
 */
export async function untilParked(
	context: Context,
	backbone: Backbone,
	{ required }: { required: boolean },
): Promise<void> {
	try {
		await Promise.race([backbone.untilParked(), untilStopped(context)]);
	} catch (error) {
		if (required || (error instanceof KvasirError && error.code === "auth")) throw error;
	}
}
