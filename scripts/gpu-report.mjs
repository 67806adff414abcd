// Figures of a graphics device that its owner can send: adapters, the self-check's digest, and the bench beside one CPU core.
// At most five minutes: `node scripts/gpu-report.mjs [ADAPTER]` after `npm ci`. Without an adapter's id the first real device is used.
import { spawnSync } from "node:child_process";
import { arch, cpus, platform, release } from "node:os";
import { fileURLToPath } from "node:url";

const kvasir = fileURLToPath(new URL("../dist/bin/kvasir.js", import.meta.url));
const endMs = Date.now() + 5 * 60_000;

console.log(`Kvasir GPU report, ${new Date().toISOString().slice(0, 10)}`);
console.log(`${platform()} ${release()} ${arch()}, Node ${process.version}, ${cpus()[0]?.model ?? "unknown CPU"}`);

const { adapters } = ask(["gpu", "list"]);
for (const { id, name, software } of adapters) console.log(`webgpu:${id}  ${name}${software ? "  (on the CPU)" : ""}`);
const chosen = adapters.find(({ id, software }) => (process.argv[2] ? id === process.argv[2] : !software));
if (!chosen) {
	console.log(process.argv[2] ? `No adapter ${process.argv[2]}` : "No graphics device: nothing to measure");
	process.exit(7);
}

console.log(`\n${await proof(chosen)}\n`);

// A line is a few hundred milliseconds on a graphics card; on software it is seconds, so the lines are fewer.
const rows = chosen.software ? [1] : [1, 4, 8, 64, 512];
console.log("type  rows  8 experts of 3072 x 1024   GB/s   pairs/s   one CPU core   ratio");
for (const type of ["Q4_K", "Q5_K", "Q6_K", "Q8_0"]) {
	for (const count of rows) {
		if (Date.now() > endMs - 30_000) {
			console.log("(five minutes are over)");
			process.exit(0);
		}
		const words = ["bench", "engine", `--gpu=webgpu:${chosen.id}`, "--type", type, "--rows", String(count)];
		const [{ device, cpu }] = ask([...words, "--line-ms", "500"]).lines;
		const cells = [type.padEnd(5), String(count).padStart(4), ms(device.ms).padStart(24)];
		cells.push(device.gigabytesPerSecond.toFixed(1).padStart(8), String(Math.round(device.pairsPerSecond)).padStart(9));
		cells.push(ms(cpu.ms).padStart(13), (cpu.ms / device.ms).toFixed(2).padStart(8));
		console.log(cells.join(" "));
	}
}

function ms(value) {
	return `${value.toFixed(value < 10 ? 3 : 1)} ms`;
}

/** The data of a command; ends with its error. */
function ask(words) {
	const { stdout, stderr } = spawnSync(process.execPath, [kvasir, ...words, "--json"], {
		encoding: "utf8",
		timeout: Math.max(1_000, endMs - Date.now()),
		maxBuffer: 2 ** 26,
	});
	const line = stdout.trim().split("\n").at(-1);
	const answer = line ? JSON.parse(line) : { ok: false, error: { message: stderr.trim() || "no answer in time" } };
	if (answer.ok) return answer.data;
	console.log(`kvasir ${words.join(" ")}: ${answer.error.message}`);
	process.exit(1);
}

/** The self-check and the times of one expert, in the process that a worker would use. */
async function proof(adapter) {
	const load = (path) => import(new URL(`../dist/src/${path}`, import.meta.url));
	const [{ proveGpu }, { systemClock }, { describeProof }] = await Promise.all(
		["experts/gpu/prove-gpu.js", "io/clock.js", "experts/describe-proof.js"].map(load),
	);
	try {
		const found = await proveGpu(adapter, systemClock);
		const digest = Buffer.from(found.selfCheck).toString("hex");
		return `${describeProof(found)}\nself-check digest ${digest}`;
	} catch (error) {
		console.log(`The device failed: ${error.message}`);
		process.exit(7);
	}
}
