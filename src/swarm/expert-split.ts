/**
 * Cuts the experts of a layer into `parts` runs, as `--hold` takes them: `all:0-5`, `all:6-10`, ...
 * The first runs are one longer where it does not divide. Parts beyond the experts hold the same run as the first.
 */
export function splitExperts(experts: number, parts: number, layers = "all"): string[] {
	const runs = Math.min(parts, experts);
	const firstOf = (run: number) => run * Math.floor(experts / runs) + Math.min(run, experts % runs);
	return Array.from({ length: parts }, (_, part) => {
		const run = part < runs ? part : 0;
		return `${layers}:${firstOf(run)}-${firstOf(run + 1) - 1}`;
	});
}
