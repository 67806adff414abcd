import { flagName } from "./options.ts";
import { globalOptions } from "./settings.ts";

/**
 * Options that every command has may stand anywhere: those before or between the words of a command are moved behind them.
 *
 * @param paths of all commands, such as `wallet create`
 * @returns the words that name a command or the beginning of one, and everything after them
 */
export function commandWords(argv: readonly string[], paths: readonly string[]): { words: string[]; rest: string[] } {
	const words: string[] = [];
	const moved: string[] = [];
	let next = 0;
	for (; next < argv.length; next++) {
		const taken = globalOptionAt(argv, next);
		const longer = [...words, argv[next]].join(" ");
		if (taken > 0) {
			moved.push(...argv.slice(next, next + taken));
			next += taken - 1;
		} else if (paths.some((path) => path === longer || path.startsWith(`${longer} `))) {
			words.push(argv[next]!);
		} else break;
	}
	return { words, rest: [...moved, ...argv.slice(next)] };
}

/** How many words a global option takes here; 0 for anything else. */
function globalOptionAt(argv: readonly string[], index: number): number {
	const [name, inline] = argv[index]!.split("=", 2);
	const spec = Object.values(globalOptions).find((option) => `--${flagName(option)}` === name);
	if (spec === undefined) return 0;
	return spec.kind === "switch" || inline !== undefined ? 1 : 2;
}
