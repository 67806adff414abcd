import { defineConfig } from "vitest/config";

// `npm run test:long` tries each property so often that minutes are no sign of a fault.
const isLong = process.env.KVASIR_TEST_LONG === "1";
const common = { testTimeout: isLong ? 1_800_000 : 60_000, hookTimeout: 60_000, maxWorkers: 2 };

export default defineConfig({
	test: {
		projects: [
			{
				test: {
					...common,
					name: "unit",
					include: ["src/**/*.test.{ts,tsx}", "bin/**/*.test.ts", "test/**/*.test.ts"],
					exclude: ["test/e2e/**", "test/crash/**"],
					sequence: { groupOrder: 0 },
				},
			},
			{
				// Whole commands in processes of their own: one file at a time, after the others, as they measure time.
				test: {
					...common,
					name: "e2e",
					include: ["test/e2e/**/*.test.ts"],
					maxWorkers: 1,
					fileParallelism: false,
					testTimeout: isLong ? 1_800_000 : 180_000,
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
