import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { startGatewayPart, startHubPart, startPart } from "../support/part-processes.ts";
import { runCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";

const nowhere = "ws://127.0.0.1:1";
const dispatch = ["backbone", "dispatch", "--listen", "127.0.0.1:0"];

describe("an error at the start is the only JSON that is printed", () => {
	it.each<[string, readonly string[], number, string]>([
		["a certificate authority there is not", ["join", "wss://127.0.0.1:1", "--ca", "not/there.pem"], 8, "file_missing"],
		["a model there is not", ["join", nowhere, "--model", "not-there"], 8, "model_missing"],
		["an expert that the model has not", ["join", nowhere, "--model", "tiny", "--hold", "0:99"], 2, "usage"],
		[
			"API keys that are not there",
			[...dispatch, "--api", "127.0.0.1:0", "--api-key-file", "no.txt"],
			8,
			"file_missing",
		],
		["an API without keys", [...dispatch, "--api", "0.0.0.0:0"], 2, "usage"],
		["both ways of choosing workers", ["verify", "--workers", "2", "--worker", "cpu"], 2, "usage"],
		["a report that cannot be written", ["verify", "--junit", "not/there/verify.xml"], 8, "file_missing"],
	])("%s", async (_name, words, exitCode, error) => {
		const { code, json } = await runCli([...words, "--home", await temporaryHome(), "--json"]);
		expect({ code, error: json().error?.code }).toEqual({ code: exitCode, error });
	});

	it("a port of the API that is in use", async () => {
		const address = `127.0.0.1:${await freePort()}`;
		const words = [...dispatch.slice(0, -1), address, "--api", address];
		const { code, json } = await runCli([...words, "--home", await temporaryHome(), "--json"]);
		expect({ code, error: json().error?.code }).toEqual({ code: 4, error: "network" });
	});
});

describe("one home", () => {
	it("has one hub, one gateway, one backbone and one worker at a time; each beside the others, and unharmed by who was refused", async () => {
		const folder = await temporaryHome();
		const hub = await startHubPart(folder);
		const gateway = await startGatewayPart(folder, hub);
		const home = join(folder, "hub");
		const again = async (words: readonly string[], home: string) => {
			const { code, json } = await runCli([...words, "--home", home, "--json"]);
			return { code, error: json().error?.code };
		};
		const inUse = { code: 2, error: "home_in_use" };
		const serveHub = ["serve-hub", "--relay", "127.0.0.1:0", "--api", "127.0.0.1:0"];
		expect(await again(serveHub, home)).toEqual(inUse);
		const serveGateway = ["serve-gateway", "--plain", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
		const secret = ["--hub-secret-file", join(folder, "hub-secret")];
		expect(await again([...serveGateway, ...secret], join(folder, "gateway"))).toEqual(inUse);
		const words = ["join", nowhere, "--hold", "0:0-0"];
		// In the hub's home: that is another role.
		const worker = await startPart(folder, "hub", words);
		expect(await again(words, home)).toEqual(inUse);
		const backbone = [...dispatch, "--model", "tiny", "--api", "127.0.0.1:0", "--wait", "0"];
		const first = await startPart(folder, "hub", backbone);
		expect(await again(backbone, home)).toEqual(inUse);
		expect(await again([...dispatch, "--model", "tiny", "--prompt", "a"], home)).toEqual(inUse);
		const { port } = await first.events.waitFor(({ event }) => event === "api", 20_000);
		expect((await fetch(`http://127.0.0.1:${port}/v1/models`)).status).toBe(200);
		expect((await fetch(`http://${hub.api}/health`)).status).toBe(200);
		await Promise.all([worker.kill(), first.kill()]);
		const next = await Promise.all([startPart(folder, "hub", words), startPart(folder, "hub", backbone)]);
		await Promise.all([...next.map((part) => part.stop()), gateway.child.stop()]);
	});
});

describe("a gateway that its hub does not believe", () => {
	it("is what a worker is told of, and not a missing backbone", async () => {
		const home = await temporaryHome();
		const hub = await startHubPart(home);
		const other = join(home, "other-secret");
		await writeFile(other, `${"ab".repeat(32)}\n`, { mode: 0o600 });
		const gateway = await startGatewayPart(home, hub, {}, { args: ["--hub-secret-file", other] });
		const worker = await startPart(home, "worker", ["join", `ws://127.0.0.1:${gateway.port}`, "--hold", "0:0-0"]);
		const told = await worker.events.waitFor(({ event }) => event === "disconnected", 20_000);
		const state = "the gateway reaches its hub, but the two do not believe each other (HTTP 502 hub_refused)";
		expect(told).toMatchObject({ code: "refused", reason: "hub_refused" });
		expect(told.message).toBe(`Cannot join at 127.0.0.1:${gateway.port}: ${state}`);
		expect(told.hint).toContain("--hub-secret-file");
	});
});
