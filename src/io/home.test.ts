import { expect, it } from "vitest";
import { homeFolder } from "./home.ts";

it.each([
	["linux", {}, "/u/.local/share/kvasir"],
	["linux", { XDG_DATA_HOME: "/data" }, "/data/kvasir"],
	["darwin", {}, "/u/Library/Application Support/kvasir"],
])("homeFolder() on %s with %j is %s", (platform, env, folder) => {
	expect(homeFolder({ platform, userHome: "/u", env })).toBe(folder);
});
