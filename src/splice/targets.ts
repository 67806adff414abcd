import { spliceLimits } from "./limits.ts";
import type { Refusal } from "./refusals.ts";

/** What a worker may ask for through gateway and hub; `target` is rebuilt from its checked parts alone. */
export interface WorkerTarget {
	readonly kind: "relay" | "manifest" | "slice";
	/** Empty: the hub's only model. */
	readonly model: string;
	/** Base58 key of one backbone; empty: any that serves the model. */
	readonly backbone: string;
	readonly target: string;
}

const modelPattern = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const keyPattern = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;
const manifestPattern = /^\/v1\/models\/([^/]+)\/manifest$/;
const slicePattern = /^\/v1\/slices\/([0-9a-f]{64})$/;

/** True for a name that may stand in a URL, a header and a metric's label as it is. */
export function isModelName(name: string): boolean {
	return name.length <= spliceLimits.modelNameBytesMax && modelPattern.test(name);
}

/** Reads a request line's target: one of the three paths with `model` and `backbone` at most; other parameters are dropped. */
export function readWorkerTarget(url: string): WorkerTarget | Refusal {
	if (url.length > spliceLimits.targetBytesMax) return { reason: "target" };
	const [path, query] = split(url);
	const parameters = new URLSearchParams(query);
	const model = single(parameters, "model");
	const backbone = single(parameters, "backbone");
	if (model === null || (model !== "" && !isModelName(model))) return { reason: "model" };
	if (backbone === null || (backbone !== "" && !keyPattern.test(backbone))) {
		return { reason: "backbone" };
	}
	if (path === "/v1/relay") return target("relay", path, model, backbone);
	const manifest = manifestPattern.exec(path)?.[1];
	if (manifest !== undefined) {
		if (!isModelName(manifest)) return { reason: "model" };
		return { ...target("manifest", path, "", backbone), model: manifest };
	}
	if (slicePattern.test(path)) return target("slice", path, model, backbone);
	return { reason: "path" };
}

/** The model named by a backbone that parks: `/backbone?model=NAME`; null for anything else. */
export function readParkTarget(url: string): string | null {
	if (url.length > spliceLimits.targetBytesMax) return null;
	const [path, query] = split(url);
	const model = single(new URLSearchParams(query), "model");
	return path === "/backbone" && model !== null && isModelName(model) ? model : null;
}

function target(kind: WorkerTarget["kind"], path: string, model: string, backbone: string): WorkerTarget {
	const query = new URLSearchParams({
		...(model === "" ? {} : { model }),
		...(backbone === "" ? {} : { backbone }),
	}).toString();
	return { kind, model, backbone, target: query === "" ? path : `${path}?${query}` };
}

function split(url: string): [path: string, query: string] {
	const at = url.indexOf("?");
	return at < 0 ? [url, ""] : [url.slice(0, at), url.slice(at + 1)];
}

/** The parameter's value, empty when absent, null when given twice. */
function single(parameters: URLSearchParams, name: string): string | null {
	const values = parameters.getAll(name);
	return values.length > 1 ? null : (values[0] ?? "");
}
