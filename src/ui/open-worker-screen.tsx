import { render } from "ink";
import { WorkerScreen, type WorkerView } from "./worker-screen.tsx";

/** Draws the worker's screen on a terminal until it is closed; Ctrl-C is left to the command. */
export function openWorkerScreen(
	view: WorkerView,
	stdout: NodeJS.WriteStream,
): { update(view: WorkerView): void; close(): void } {
	const ink = render(<WorkerScreen view={view} />, { stdout, exitOnCtrlC: false, patchConsole: false });
	return {
		update: (newest) => ink.rerender(<WorkerScreen view={newest} />),
		close: () => ink.unmount(),
	};
}
