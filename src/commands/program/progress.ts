import type { Host } from "./host.ts";
import { isTerminal } from "./output.ts";
import type { GlobalOptions } from "./settings.ts";

const patienceMs = 1000;

/** Runs `work`; a spinner appears on stderr once it has taken a second, on a terminal only. */
export async function withProgress<T>(
	host: Host,
	global: GlobalOptions,
	label: string,
	work: (say: (label: string) => void) => Promise<T>,
): Promise<T> {
	if (global.quiet || !isTerminal(host.env, host.stderr)) return work(() => {});
	const { default: ora } = await import("ora");
	const spinner = ora({ text: label, stream: host.stderr as NodeJS.WriteStream, discardStdin: false });
	const timer = setTimeout(() => spinner.start(), patienceMs);
	try {
		return await work((said) => {
			spinner.text = said;
		});
	} finally {
		clearTimeout(timer);
		spinner.stop();
	}
}
