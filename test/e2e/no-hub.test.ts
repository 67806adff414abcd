import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { startHubPart } from "../support/part-processes.ts";
import { runCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";

const dispatch = ["backbone", "dispatch", "--prompt", "The capital", "--tokens", "2", "--park", "2"];
const verify = ["verify", "--tokens", "1"];

describe("a hub that does not list the backbone's key", () => {
	it.each([
		["backbone dispatch", dispatch],
		["verify", verify],
	])("ends %s at once, and the hint lists the key", async (_name, words) => {
		const home = await temporaryHome();
		const hub = await startHubPart(home);
		const { code, json } = await runCli([...words, "--hub", hub.relay, "--home", `${home}/unlisted`, "--json"]);
		// One JSON object: nothing was told before.
		const { error } = json();
		const key = /our key (\w{32,44}) is not on its list$/.exec(error!.message)?.[1];
		expect({ code, error: error?.code, hint: error?.hint }).toEqual({
			code: 5,
			error: "auth",
			hint: `kvasir serve-hub --backbone-key ${key}`,
		});
	});
});

describe("a hub that nobody started", () => {
	it.each([
		["backbone dispatch --require-remote", [...dispatch, "--require-remote", "--wait", "60"]],
		["verify", verify],
	])("ends %s at once", async (_name, words) => {
		const home = await temporaryHome();
		const hub = `127.0.0.1:${await freePort()}`;
		const { code, json } = await runCli([...words, "--hub", hub, "--home", home, "--json"]);
		expect({ code, error: json().error }).toMatchObject({
			code: 4,
			error: { code: "refused", message: `Cannot park at the hub ${hub}: nobody listens there` },
		});
	});

	it("is not needed by backbone dispatch without --require-remote", async () => {
		const home = await temporaryHome();
		const hub = `127.0.0.1:${await freePort()}`;
		const result = await runCli([...dispatch, "--hub", hub, "--home", home, "--wait", "0", "--json"]);
		expect(result.code).toBe(0);
		expect(result.lines()[0]).toMatchObject({ event: "listening" });
		expect(result.lines().at(-1)).toMatchObject({ event: "done", answers: [{ tokens: expect.any(Array) }] });
	});
});
