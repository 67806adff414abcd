import { expect, it } from "vitest";
import { reportSince } from "./run-report.ts";

const times = { mixerMs: 1, matricesMs: 0, routerMs: 0, expertsMs: 0, waitMs: 2, headMs: 0, restMs: 0 };
const remote = { asked: 16, answered: 12, fallback: 4, retried: 1, roundTrips: 4, failures: { deadline: 4 } };

it("reportSince() tells one run from those before", () => {
	const after = {
		times: { ...times, mixerMs: 4, waitMs: 2 },
		remote: { asked: 32, answered: 26, fallback: 6, retried: 1, roundTrips: 8, failures: { deadline: 4, closed: 2 } },
		partials: null,
	};
	expect(reportSince({ times, remote, partials: null }, after)).toEqual({
		times: { ...times, mixerMs: 3, waitMs: 0 },
		remote: { asked: 16, answered: 14, fallback: 2, retried: 0, roundTrips: 4, failures: { deadline: 0, closed: 2 } },
	});
	expect(
		reportSince({ times, remote: null, partials: null }, { times, remote: null, partials: null }).remote,
	).toBeNull();
});
