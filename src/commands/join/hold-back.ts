/** Words that wait until something else was said. */
export interface HeldBack {
	/** Runs `say` now, or once the words are let go. */
	say(say: () => void): void;
	/** Says what waits, in its order; from now on nothing does. */
	letGo(): void;
}

/** Holds events back until a command is sure to start: an error before that is the only thing it prints. */
export function holdBack(): HeldBack {
	let held: (() => void)[] | null = [];
	return {
		say(say) {
			if (held === null) say();
			else held.push(say);
		},
		letGo() {
			const waiting = held ?? [];
			held = null;
			for (const say of waiting) say();
		},
	};
}
