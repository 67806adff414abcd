/**
 * Cuts the experts of a layer into `parts` runs, as `--hold` takes them: `all:0-5`, `all:6-10`, ...
 * The first runs are one longer where it does not divide. Parts beyond the experts hold the same run as the first.
 */
export function splitExperts(experts: number, parts: number, layers = "all"): string[] {
	const holds: string[] = [];
	let first = 0;
	for (let part = 0; part < Math.min(parts, experts); part++) {
		const count = Math.floor(experts / Math.min(parts, experts)) + (part < experts % parts ? 1 : 0);
		holds.push(`${layers}:${first}-${first + count - 1}`);
		first += count;
	}
	while (holds.length < parts) holds.push(holds[0]!);
	return holds;
}
