import type { CommandSpec } from "./program/command.ts";

interface CatalogEntry {
	/** Such as `wallet create`. */
	readonly path: string;
	/** Repeated here so that `kvasir --help` loads no command; a test compares it with the declaration. */
	readonly summary: string;
	load(): Promise<CommandSpec>;
}

/** Every command, in the order `--help` lists them. Declarations are loaded when they are asked for. */
export const catalog: readonly CatalogEntry[] = [
	{
		path: "demo",
		summary: "everything on loopback with the fixture model: gateway, hub, backbone and two workers",
		load: async () => (await import("./demo.ts")).demoCommand,
	},
	{
		path: "verify",
		summary: "decode locally and through the swarm, compare every position and every partial",
		load: async () => (await import("./verify/verify.ts")).verifyCommand,
	},
	{
		path: "join",
		summary: "compute experts for a swarm: dial a gateway, serve, get paid",
		load: async () => (await import("./join/join.ts")).joinCommand,
	},
	{
		path: "backbone dispatch",
		summary: "decode with the routed experts computed by workers",
		load: async () => (await import("./backbone/backbone-dispatch.ts")).backboneDispatchCommand,
	},
	{
		path: "backbone key",
		summary: "print this home's node key, which the hub must list; made on first use",
		load: async () => (await import("./backbone/backbone-key.ts")).backboneKeyCommand,
	},
	{
		path: "serve-gateway",
		summary: "the public edge: admit workers and splice them to the hub",
		load: async () => (await import("./gateway/serve-gateway.ts")).serveGatewayCommand,
	},
	{
		path: "gateway invite create",
		summary: "a single-use invite for one new worker key",
		load: async () => (await import("./gateway/gateway-invite-create.ts")).gatewayInviteCreateCommand,
	},
	{
		path: "gateway invite list",
		summary: "invites and what became of them",
		load: async () => (await import("./gateway/gateway-invite-list.ts")).gatewayInviteListCommand,
	},
	{
		path: "gateway invite revoke",
		summary: "take back an invite nobody used",
		load: async () => (await import("./gateway/gateway-invite-revoke.ts")).gatewayInviteRevokeCommand,
	},
	{
		path: "gateway allow",
		summary: "let a key in without an invite",
		load: async () => (await import("./gateway/gateway-allow.ts")).gatewayAllowCommand,
	},
	{
		path: "gateway disallow",
		summary: "take a key off the allow list",
		load: async () => (await import("./gateway/gateway-disallow.ts")).gatewayDisallowCommand,
	},
	{
		path: "gateway ban",
		summary: "keep a key out and cut its links",
		load: async () => (await import("./gateway/gateway-ban.ts")).gatewayBanCommand,
	},
	{
		path: "gateway unban",
		summary: "let a banned key in again",
		load: async () => (await import("./gateway/gateway-unban.ts")).gatewayUnbanCommand,
	},
	{
		path: "serve-hub",
		summary: "the LAN hub: tie workers to parked backbone sockets, keep the ledger",
		load: async () => (await import("./serve-hub.ts")).serveHubCommand,
	},
	{
		path: "wallet create",
		summary: "make a wallet key, encrypted, in the home",
		load: async () => (await import("./wallet/wallet-create.ts")).walletCreateCommand,
	},
	{
		path: "wallet address",
		summary: "print the address that work is paid to",
		load: async () => (await import("./wallet/wallet-address.ts")).walletAddressCommand,
	},
	{
		path: "wallet balance",
		summary: "pending, claimed and paid KVR of an address",
		load: async () => (await import("./wallet/wallet-balance.ts")).walletBalanceCommand,
	},
	{
		path: "wallet history",
		summary: "every credit, claim and payout of the wallet, and what was not paid",
		load: async () => (await import("./wallet/wallet-history.ts")).walletHistoryCommand,
	},
	{
		path: "wallet reconcile",
		summary: "each receipt kept here against the gateway's credits, every difference with its reason",
		load: async () => (await import("./wallet/wallet-reconcile.ts")).walletReconcileCommand,
	},
	{
		path: "wallet claim",
		summary: "have pending KVR paid out",
		load: async () => (await import("./wallet/wallet-claim.ts")).walletClaimCommand,
	},
	{
		path: "wallet import",
		summary: "make a key from elsewhere this home's wallet: PEM, Solana key file or 12 to 24 words",
		load: async () => (await import("./wallet/wallet-import.ts")).walletImportCommand,
	},
	{
		path: "wallet export",
		summary: "the wallet's key for use elsewhere: encrypted PEM, or a Solana key file",
		load: async () => (await import("./wallet/wallet-export.ts")).walletExportCommand,
	},
	{
		path: "wallet verify-backup",
		summary: "does this file, or do these words, restore this home's wallet?",
		load: async () => (await import("./wallet/wallet-verify-backup.ts")).walletVerifyBackupCommand,
	},
	{
		path: "ledger check",
		summary: "receipts x rate = not yet polled + pending + claimed + paid + remainder, per wallet and in all",
		load: async () => (await import("./ledger/ledger-check.ts")).ledgerCheckCommand,
	},
	{
		path: "ledger export-payouts",
		summary: "every open claim, to be paid; can be repeated",
		load: async () => (await import("./ledger/ledger-export-payouts.ts")).ledgerExportPayoutsCommand,
	},
	{
		path: "ledger confirm-payout",
		summary: "a claim was paid: note the transaction",
		load: async () => (await import("./ledger/ledger-confirm-payout.ts")).ledgerConfirmPayoutCommand,
	},
	{
		path: "ledger release-payout",
		summary: "a claim could not be paid: its amount is pending again",
		load: async () => (await import("./ledger/ledger-release-payout.ts")).ledgerReleasePayoutCommand,
	},
	{
		path: "model add",
		summary: "register a GGUF file under a name",
		load: async () => (await import("./model/model-add.ts")).modelAddCommand,
	},
	{
		path: "model list",
		summary: "the models that can be named",
		load: async () => (await import("./model/model-list.ts")).modelListCommand,
	},
	{
		path: "model inspect",
		summary: "geometry, tensor types and bytes of a model",
		load: async () => (await import("./model/model-inspect.ts")).modelInspectCommand,
	},
	{
		path: "model manifest",
		summary: "the SHA-256 of every expert's slice, as workers check them",
		load: async () => (await import("./model/model-manifest.ts")).modelManifestCommand,
	},
	{
		path: "bench decode",
		summary: "milliseconds per token, local and remote, and where they go",
		load: async () => (await import("./bench/bench-decode.ts")).benchDecodeCommand,
	},
	{
		path: "bench engine",
		summary: "milliseconds per matrix and row, canonical against onnxruntime, weights streamed from memory",
		load: async () => (await import("./bench/bench-engine.ts")).benchEngineCommand,
	},
	{
		path: "bench ledger",
		summary: "receipts a second that the hub stores and the gateway credits, each on disk before it is acknowledged",
		load: async () => (await import("./bench/bench-ledger.ts")).benchLedgerCommand,
	},
	{
		path: "bench path",
		summary: "what the way to the workers costs, through gateway and hub",
		load: async () => (await import("./bench/bench-path.ts")).benchPathCommand,
	},
	{
		path: "bench splice",
		summary: "processor time and memory that gateway and hub take for what they carry, beside nginx for the same",
		load: async () => (await import("./bench/bench-splice.ts")).benchSpliceCommand,
	},
	{
		path: "status",
		summary: "what a running gateway says of itself",
		load: async () => (await import("./status/status.ts")).statusCommand,
	},
	{
		path: "gpu list",
		summary: "the graphics devices that --gpu=webgpu:ID can name",
		load: async () => (await import("./gpu-list.ts")).gpuListCommand,
	},
	{
		path: "gpu install-cuda",
		summary: "download onnxruntime's CUDA libraries, for --gpu=cuda --engine onnx",
		load: async () => (await import("./gpu-install-cuda.ts")).gpuInstallCudaCommand,
	},
	{
		path: "top",
		summary: "a live screen of a gateway's busiest links",
		load: async () => (await import("./status/top.ts")).topCommand,
	},
	{
		path: "doctor",
		summary: "check this machine by doing: disk, keys, engines, clock, gateway",
		load: async () => (await import("./doctor.ts")).doctorCommand,
	},
	{
		path: "config show",
		summary: "every setting with its value and where it came from",
		load: async () => (await import("./config-show.ts")).configShowCommand,
	},
	{
		path: "completion",
		summary: "a completion script for bash, zsh, fish or powershell",
		load: async () => (await import("./completion.ts")).completionCommand,
	},
];

/** What the first word of two-word commands stands for. */
export const groups: Readonly<Record<string, string>> = {
	backbone: "the machine that decodes",
	gateway: "who may join",
	"gateway invite": "single-use invites",
	wallet: "keys and balances",
	ledger: "what an operator settles and checks",
	model: "GGUF files and their names",
	bench: "measured tables",
	gpu: "graphics devices",
	config: "settings and where they come from",
};

/** Every declaration. */
export function loadAll(): Promise<CommandSpec[]> {
	return Promise.all(catalog.map((entry) => entry.load()));
}
