import { execPath } from "node:process";
import { expect, it } from "vitest";
import { installCuda } from "./install-cuda.ts";

const signal = new AbortController().signal;

it("is a usage error where onnxruntime has no CUDA libraries", async () => {
	const asked = installCuda({ execPath, env: {}, platform: "darwin/arm64", signal });
	await expect(asked).rejects.toMatchObject({ code: "usage", hint: expect.stringContaining("--gpu=webgpu") });
});

it("offline it fails as a network error in the installer's own words", async () => {
	// A proxy where nobody listens: this machine's network does not matter.
	const proxy = "http://127.0.0.1:9";
	const env = { PATH: process.env.PATH, GLOBAL_AGENT_HTTP_PROXY: proxy, GLOBAL_AGENT_HTTPS_PROXY: proxy };
	const asked = installCuda({ execPath, env, platform: "linux/x64", signal });
	await expect(asked).rejects.toMatchObject({
		code: "network",
		message: expect.stringMatching(/Cannot install the CUDA libraries: .*(ECONNREFUSED|error)/i),
		hint: expect.stringContaining("internet"),
	});
});
