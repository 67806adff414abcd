import process from "node:process";
import { plainError } from "../../errors.ts";
import { listAdapters } from "./adapters.ts";

// The entry of the process that asks the drivers what is there, so that one which crashes or hangs takes nothing else along.
const answer = await listAdapters().then(
	(adapters) => ({ adapters }),
	(error: unknown) => ({ error: plainError(error) }),
);
process.send?.(answer, () => process.exit(0));
