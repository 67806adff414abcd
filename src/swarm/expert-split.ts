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

/**
 * Deals whole layers out, so that one part holds all experts of each row: `0,3:all`, `1:all`, `2:all`. Where there are fewer layers
 * than parts, each holds everything.
 */
export function splitLayers(layers: number, parts: number): string[] {
	if (layers < parts) return Array.from({ length: parts }, () => "all:all");
	return Array.from({ length: parts }, (_, part) => {
		const own = Array.from({ length: layers }, (_, layer) => layer).filter((layer) => layer % parts === part);
		return `${own.join(",")}:all`;
	});
}
