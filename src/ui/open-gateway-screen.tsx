import { render } from "ink";
import { GatewayScreen, type GatewayView } from "./gateway-screen.tsx";

/** Draws the gateway's screen on a terminal until it is closed; Ctrl-C is left to the command. */
export function openGatewayScreen(
	view: GatewayView,
	stdout: NodeJS.WriteStream,
): { update(view: GatewayView): void; close(): void } {
	const ink = render(<GatewayScreen view={view} />, { stdout, exitOnCtrlC: false, patchConsole: false });
	return {
		update: (newest) => ink.rerender(<GatewayScreen view={newest} />),
		close: () => ink.unmount(),
	};
}
