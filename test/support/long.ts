/** True under `npm run test:long`: the tests that take minutes are as large as they are meant to be. */
export const isLong = process.env.KVASIR_TEST_LONG === "1";

/** How often a property is tried, or how many of something there are: `usual`, or `long` under `npm run test:long`. */
export function runs(usual: number, long: number): number {
	return isLong ? long : usual;
}
