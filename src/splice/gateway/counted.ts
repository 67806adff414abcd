/** How many of something are held under each name, with a limit for one name. */
export interface Counted {
	/** Takes one place under `name`; null when it has `max` already. The returned function gives it back, once. */
	take(name: string): (() => void) | null;
	of(name: string): number;
	readonly total: number;
}

export function createCounted(max: number): Counted {
	const counts = new Map<string, number>();
	let total = 0;
	return {
		take(name) {
			const held = counts.get(name) ?? 0;
			if (held >= max) return null;
			counts.set(name, held + 1);
			total += 1;
			let returned = false;
			return () => {
				if (returned) return;
				returned = true;
				total -= 1;
				const left = counts.get(name)! - 1;
				if (left === 0) counts.delete(name);
				else counts.set(name, left);
			};
		},
		of: (name) => counts.get(name) ?? 0,
		get total() {
			return total;
		},
	};
}
