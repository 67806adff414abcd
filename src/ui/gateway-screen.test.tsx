import { render } from "ink-testing-library";
import { expect, it } from "vitest";
import { GatewayScreen } from "./gateway-screen.tsx";

it("shows state and links, the busiest first", () => {
	const link = { peer: "192.0.2.1", model: "", receivedBytes: 1_000, sentBytes: 2_000, receivedRate: 0, sentRate: 0 };
	const view = {
		gateway: "127.0.0.1:9443",
		state: "serving",
		admission: "open",
		linkCount: 2,
		links: [
			{ ...link, key: "quiet" },
			{ ...link, key: "busy", receivedRate: 500 },
		],
	};
	const frame = render(<GatewayScreen view={view} />).lastFrame()!;
	expect(frame).toContain("2 links, admission open");
	expect(frame.indexOf("busy")).toBeGreaterThan(0);
	expect(frame.indexOf("busy")).toBeLessThan(frame.indexOf("quiet"));
});
