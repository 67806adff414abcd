/** Waits until `holds` is true, looking every few milliseconds; fails naming what it waited for. */
export async function until(holds: () => boolean | Promise<boolean>, what: string, deadlineMs = 20_000): Promise<void> {
	const end = performance.now() + deadlineMs;
	while (!(await holds())) {
		if (performance.now() > end) throw new Error(`Waited ${deadlineMs} ms for ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
}
