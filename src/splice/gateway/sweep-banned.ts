import type { Clock } from "../../io/clock.ts";
import type { Logger } from "../../io/log.ts";
import { spliceLimits } from "../limits.ts";
import type { Admission } from "./admission.ts";
import type { LiveLinks } from "./live-links.ts";

/** Ends the links of keys that are banned while they are linked; the returned function stops that. */
export function sweepBanned(
	links: LiveLinks,
	admission: Admission,
	{ clock, log }: { clock: Clock; log: Logger },
): () => void {
	let stopped = false;
	let cancel = clock.after(spliceLimits.banSweepMs, sweep);
	async function sweep(): Promise<void> {
		const banned = new Set(await admission.bannedOf([...new Set([...links].map(({ key }) => key))]));
		for (const link of links) {
			if (!banned.has(link.key)) continue;
			log.info({ key: link.key, peer: link.peer }, "link cut: its key is banned");
			link.cut();
		}
		if (!stopped) cancel = clock.after(spliceLimits.banSweepMs, sweep);
	}
	return () => {
		stopped = true;
		cancel();
	};
}
