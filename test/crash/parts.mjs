// What the driver's backbone and worker share: a model of no weights, whose experts are a formula.
import { createHash } from "node:crypto";

/** The built package. */
export const built = (path) => import(new URL(`../../dist/src/${path}.js`, import.meta.url));

const { systemClock } = await built("io/clock");
const { systemRandom } = await built("io/random");
const { silentLog } = await built("io/log");
const { armFailpoints } = await built("io/arm-failpoints");

if (process.env.NODE_ENV === "test") armFailpoints(process.env.KVASIR_TEST_FAILPOINTS);

/** Redials come at once: waiting is not what is tested. */
const random = { bytes: systemRandom.bytes, uniform: () => 0.02 * systemRandom.uniform() };
export const parts = { clock: systemClock, random, log: silentLog };

export const model = {
	modelId: new Uint8Array(createHash("sha256").update("crash").digest()),
	name: "crash",
	layers: 2,
	experts: 8,
	topK: 2,
	hidden: 16,
	expertWidth: 16,
};

/** `(row, expert) -> row x (expert + 1) + layer`: exact in binary32 for small integers. */
export async function compute({ layer, rows, rowIndex, expert, weight, rowCount }) {
	const { hidden } = model;
	const out = new Float32Array((weight ? rowCount : expert.length) * hidden);
	expert.forEach((id, pair) => {
		const to = weight ? rowIndex[pair] : pair;
		for (let i = 0; i < hidden; i++) {
			const value = rows.values[rowIndex[pair] * hidden + i] * (id + 1) + layer;
			out[to * hidden + i] += weight ? Math.fround(weight[pair] * value) : value;
		}
	});
	return out;
}

export function tell(event) {
	process.stdout.write(`${JSON.stringify(event)}\n`);
}

/** Ends with the parent, however that ends. */
export function endWithParent(close) {
	process.stdin.resume().once("end", async () => {
		setTimeout(() => process.exit(1), 5_000).unref();
		await close();
		process.exit(0);
	});
}
