import { existsSync, readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { temporaryHome } from "../../test/support/temporary-home.ts";
import { armedFailpoints, armFailpoints } from "./arm-failpoints.ts";
import { failpoint, failpoints } from "./failpoint.ts";

afterEach(() => armFailpoints(null));

it("failpoint() ends the process where the file says, once, and nowhere else", async () => {
	const kill = vi.spyOn(process, "kill").mockReturnValue(true);
	const file = join(await temporaryHome(), "point");
	failpoint("hub.group.after");
	armFailpoints(file);
	expect(armedFailpoints()).toBe(file);
	failpoint("hub.group.after");
	await writeFile(file, "hub.group.after");
	failpoint("hub.group.before");
	expect(kill).not.toHaveBeenCalled();
	failpoint("hub.group.after");
	failpoint("hub.group.after");
	expect(kill.mock.calls).toEqual([[process.pid, "SIGKILL"]]);
	expect(existsSync(file)).toBe(false);
	kill.mockRestore();
});

it("every point of the table is passed in exactly one place", () => {
	const source = new URL("../", import.meta.url);
	const files = readdirSync(source, { recursive: true, encoding: "utf8" });
	const text = files
		.filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
		.map((name) => readFileSync(new URL(name, source), "utf8"))
		.join("\n");
	const passed = [...text.matchAll(/failpoint\("([a-z.]+)"\)/g)].map(([, name]) => name!);
	expect(passed.sort()).toEqual([...failpoints].sort());
});
