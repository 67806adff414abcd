import { defineConfig } from "vitest/config";

// `npm run test:long` tries each property so often that minutes are no sign of a fault.
const isLong = process.env.KVASIR_TEST_LONG === "1";
const common = { testTimeout: isLong ? 1_800_000 : 60_000, hookTimeout: 60_000, maxWorkers: 2 };
const e2e = {
	...common,
	testTimeout: isLong ? 1_800_000 : 180_000,
	setupFiles: ["test/support/own-temporary-folder.ts"],
};

/** Whole commands that say how long they may take on a machine that does nothing else; the others wait most of the time. */
const alone = [
	// `--help` in 200 ms.
	"test/e2e/help.test.ts",
	// The demo in 20 s.
	"test/e2e/demo.test.ts",
	// The true geometry in a minute.
	"test/e2e/verify-122b.test.ts",
	// What a driver compiles on both cores is within the 20 s that verify gives each dispatch.
	"test/e2e/gpu.test.ts",
	// A link dead after half a second of silence.
	"test/e2e/half-open.test.ts",
];

export default defineConfig({
	test: {
		projects: [
			{
				test: {
					...common,
					name: "unit",
					include: ["src/**/*.test.{ts,tsx}", "bin/**/*.test.ts", "test/**/*.test.ts"],
					exclude: ["test/e2e/**", "test/crash/**"],
				},
			},
			{
				// Whole commands in processes of their own.
				test: {
					...e2e,
					name: "e2e",
					include: ["test/e2e/**/*.test.ts"],
					exclude: alone,
				},
			},
			{
				test: {
					...e2e,
					name: "alone",
					include: alone,
					maxWorkers: 1,
					fileParallelism: false,
					sequence: { groupOrder: 1 },
				},
			},
			{
				// Hundreds of killed processes: only when asked for, npm run test:crash.
				test: {
					...common,
					name: "crash",
					include: process.env.KVASIR_TEST_CRASHES ? ["test/crash/**/*.test.ts"] : [],
					maxWorkers: 1,
					fileParallelism: false,
					sequence: { groupOrder: 2 },
				},
			},
		],
	},
});
