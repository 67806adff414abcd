import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { packagePath } from "../../src/io/built.ts";
import { processesNaming } from "../support/leaks.ts";
import { runCli } from "../support/run-cli.ts";
import { temporaryHome } from "../support/temporary-home.ts";
import { draftsIn, testSwarm } from "../support/test-swarm.ts";
import { until } from "../support/until.ts";

describe("startSwarm()", () => {
	it("starts hub and gateway on free ports and leaves nothing behind", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home);
		const health = await fetch(`http://${swarm.hubApi}/health`);
		expect(await health.json()).toEqual({ status: "ok" });
		expect((await fetch(`${swarm.gatewayUrl}/v1/relay`)).status).toBe(426);
		expect(await processesNaming(home)).toHaveLength(2);
		await swarm.stop();
		expect(await processesNaming(home)).toEqual([]);
		expect(await draftsIn(home)).toEqual([]);
		for (const { listening } of [swarm.hub, swarm.gateway]) {
			for (const [name, port] of Object.entries(listening))
				if (/port$/i.test(name)) expect(await isOpen(Number(port))).toBe(false);
		}
	});

	it("says what a process that could not start said, and stops the others", async () => {
		const home = await temporaryHome();
		const gatewayArgs = ["--trust-proxy", "not-an-address"];
		await expect(testSwarm(home, { gatewayArgs })).rejects.toMatchObject({
			code: "usage",
			message: expect.stringContaining("not-an-address"),
			facts: { process: "gateway" },
		});
		expect(await processesNaming(home)).toEqual([]);
	});

	it("ends with its parent, even when that one was killed", async () => {
		const home = await temporaryHome();
		const parent = join(home, "parent.mjs");
		const dist = packagePath("dist/src/swarm/swarm.js");
		await writeFile(
			parent,
			`import { startSwarm } from ${JSON.stringify(dist)};
			import { systemClock } from ${JSON.stringify(packagePath("dist/src/io/clock.js"))};
			await startSwarm({ execPath: process.execPath, cliPath: ${JSON.stringify(packagePath("dist/bin/kvasir.js"))},
				env: process.env, clock: systemClock, home: ${JSON.stringify(join(home, "swarm"))}, model: "tiny", backbones: [], workers: [] });
			console.log("started");`,
		);
		const child = spawn(process.execPath, [parent], { stdio: ["ignore", "pipe", "inherit"] });
		onTestFinished(() => void child.kill("SIGKILL"));
		await new Promise((resolve) => child.stdout.once("data", resolve));
		expect(await processesNaming(join(home, "swarm"))).toHaveLength(2);
		child.kill("SIGKILL");
		await until(async () => (await processesNaming(join(home, "swarm"))).length === 0, "the children to end");
	});
});

describe("a command told to end", () => {
	it("fails with a typed error when its port is taken", async () => {
		const home = await temporaryHome();
		const swarm = await testSwarm(home);
		const other = await temporaryHome();
		const { code, stdout } = await runCli([
			"serve-hub",
			"--relay",
			swarm.hubRelay,
			"--api",
			"127.0.0.1:0",
			"--home",
			other,
			"--json",
		]);
		expect(code).toBe(4);
		expect(JSON.parse(stdout)).toMatchObject({
			ok: false,
			error: { code: "network", message: expect.stringContaining("EADDRINUSE") },
		});
	});
});

function isOpen(port: number): Promise<boolean> {
	return new Promise((resolve) => {
		const socket = connect(port, "127.0.0.1");
		socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
		socket.once("connect", () => socket.destroy());
	});
}
