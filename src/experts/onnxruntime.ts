import { env } from "node:process";
import type { InferenceSession, Tensor, TensorConstructor } from "onnxruntime-node";
import { KvasirError } from "../errors.ts";
import type { OnnxModel } from "../model/onnx/onnx-model.ts";

// The only door to onnxruntime-node. Its Linux builds report to Microsoft unless this variable is set in the real environment
// before the library is loaded. A worker thread's environment is a copy: threads that come here are started with SHARE_ENV.

export type { InferenceSession, Tensor };

type Onnxruntime = typeof import("onnxruntime-node");

let loading: Promise<Onnxruntime> | null = null;

/** Loads onnxruntime-node, telemetry off. Throws `engine_failed` where the platform has no build of it. */
function loadOnnxruntime(): Promise<Onnxruntime> {
	env.ORT_DISABLE_TELEMETRY = "1";
	loading ??= import("onnxruntime-node").catch((cause: unknown) => {
		throw new KvasirError("engine_failed", "Cannot load onnxruntime-node: no build for this platform", {
			hint: "run npm install again; supported: linux, macOS (arm64) and Windows",
			cause,
		});
	});
	return loading;
}

export interface SessionOptions {
	/** Threads inside one operator. @default 1 */
	readonly threads?: number;
	/** onnxruntime's execution providers, in order of preference. @default ["cpu"] */
	readonly providers?: readonly string[];
	/** Every operator runs on the first provider, or the session is refused. Left out, some may silently run on the CPU. */
	readonly providerOnly?: boolean;
}

/** Such as `1.30.0`. */
export async function onnxruntimeVersion(): Promise<string> {
	const { env: facts } = await loadOnnxruntime();
	return facts.versions.node ?? facts.versions.common;
}

/** Compiles a graph. Throws `engine_failed` with onnxruntime's own words. */
export async function openSession(model: OnnxModel, options: SessionOptions = {}): Promise<InferenceSession> {
	const { InferenceSession } = await loadOnnxruntime();
	try {
		return await InferenceSession.create(model.bytes, {
			executionProviders: [...(options.providers ?? ["cpu"])],
			intraOpNumThreads: options.threads ?? 1,
			interOpNumThreads: 1,
			logSeverityLevel: 4, // failures reach the caller as exceptions
			externalData: [...model.externalData],
			...(options.providerOnly ? { extra: { session: { disable_cpu_ep_fallback: "1" } } } : {}),
		});
	} catch (cause) {
		throw new KvasirError("engine_failed", `Cannot prepare a computation: ${(cause as Error).message}`, { cause });
	}
}

/** Makes a tensor over an array, without copying it. */
export type MakeTensor = TensorConstructor;

/** The constructor of tensors, for files that must not load onnxruntime themselves. */
export async function tensorConstructor(): Promise<MakeTensor> {
	return (await loadOnnxruntime()).Tensor;
}
