import { modelOptions } from "../model/model-options.ts";
import { defineCommand } from "../program/command.ts";
import { list, type OptionValues, toggle, value } from "../program/options.ts";
import { address, byteSize, gpuDevice, heldRange, modelName, path, text } from "../program/readers.ts";
import { untilStopped } from "../program/until-stopped.ts";
import { ownAddresses, watchNetwork } from "./watch-network.ts";

const options = {
	...modelOptions,
	model: value("--model <name|path>", "serve from this model; without it experts come over the gateway", text),
	swarmModel: value("--swarm-model <name>", "the model to serve, where several are behind the gateway", modelName),
	cache: value("--cache <size>", "most bytes of fetched experts kept on disk; twice the memory without it", byteSize),
	hold: list(
		"--hold <layers:first-last>",
		"experts to serve, such as all:0-7; repeatable; what the backbone assigns without it",
		heldRange,
	),
	wallet: value("--wallet <address>", "who is paid; else this home's wallet, else this node", address),
	gpu: value("--gpu [device]", "compute on a GPU, never on the CPU instead: auto or webgpu:ID", gpuDevice),
	inviteFile: value("--invite-file <file>", "an invite, for a gateway that asks new keys for one", path),
	ca: value("--ca <file>", "also trust this certificate authority, PEM", path),
	fragment: value("--fragment <size>", "longest WebSocket frame to send, for paths that break on long ones", byteSize),
	insecure: toggle("--insecure", "allow ws:// beyond this machine"),
};

export type JoinOptions = OptionValues<typeof options>;

const drainMs = 8_000;

export const joinCommand = defineCommand({
	path: "join",
	section: "join",
	summary: "compute experts for a swarm: dial a gateway, serve, get paid",
	operands: [{ name: "<url>", about: "the gateway, wss://gate.example; #KEY behind it pins the backbone" }],
	options,
	example: "kvasir join wss://gate.example --threads 4",
	async run(context, chosen, [url]) {
		const [{ openJoin }, { openWorkerView }] = await Promise.all([
			import("./open-join.ts"),
			import("./worker-view.ts"),
		]);
		let redial = () => {};
		const offHangup = context.onHangup(() => redial());
		const view = await openWorkerView(context);
		const joined = await openJoin({ ...context, log: view.log }, chosen, url!, view.onEvent);
		redial = () => joined.worker.redial();
		const offNetwork = watchNetwork(context.clock, ownAddresses, () => joined.worker.redial());
		try {
			view.show(joined.worker);
			const stopped = untilStopped(context).then(() => joined.worker.drain("stopped", drainMs));
			await Promise.race([stopped, joined.worker.closed.then(() => stopped)]);
			return {};
		} finally {
			offHangup();
			offNetwork();
			view.close();
			await joined.close();
		}
	},
});
