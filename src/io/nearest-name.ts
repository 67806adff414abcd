/** The name closest to `given` by edits (Levenshtein, cases ignored), or null when none is close enough to be meant. */
export function nearestName(given: string, names: readonly string[]): string | null {
	const ranked = names.map((name) => ({ name, edits: editsBetween(given.toLowerCase(), name.toLowerCase()) }));
	const best = ranked.sort((a, b) => a.edits - b.edits)[0];
	return best && best.edits <= Math.max(2, Math.floor(given.length / 3)) ? best.name : null;
}

function editsBetween(a: string, b: string): number {
	let row = Array.from({ length: b.length + 1 }, (_, index) => index);
	for (let i = 1; i <= a.length; i++) {
		const next = [i];
		for (let j = 1; j <= b.length; j++) {
			const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
			next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
		}
		row = next;
	}
	return row[b.length]!;
}
