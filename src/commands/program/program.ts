import { Command, CommanderError, Option } from "commander";
import { KvasirError } from "../../errors.ts";
import { nearestName } from "../../io/nearest-name.ts";
import { catalog, groups, loadAll } from "../catalog.ts";
import type { CommandSpec } from "./command.ts";
import { commandWords } from "./command-words.ts";
import type { Host } from "./host.ts";
import { flagName, type OptionSpec, type OptionSpecs } from "./options.ts";
import { printError } from "./output.ts";
import { programVersion } from "./program-version.ts";
import { environmentName, globalOptions } from "./settings.ts";

/** Runs the command line; returns the exit code. Everything that goes wrong has been printed by then. */
export async function runProgram(host: Host): Promise<number> {
	let exitCode = 0;
	try {
		const { words, rest } = commandWords(
			host.argv,
			catalog.map(({ path }) => path),
		);
		const program = await buildProgram(host, words, (code) => {
			exitCode = code;
		});
		await program.parseAsync([...words, ...rest], { from: "user" });
		return exitCode;
	} catch (error) {
		if (error instanceof CommanderError) {
			if (error.exitCode === 0) return 0;
			return reportFailure(host, usageError(error));
		}
		return reportFailure(host, error);
	}
}

/** Prints a failure by what the raw command line asks for, as it may have happened before or outside any command. */
export function reportFailure(host: Host, error: unknown): number {
	const json = host.argv.includes("--json") || /^(true|1)$/.test(host.env.KVASIR_JSON ?? "");
	return printError(host, error, {
		json,
		stack: host.argv.includes("debug") || host.env.KVASIR_LOG_LEVEL === "debug",
	});
}

/** The commander tree: names and summaries of all, the declaration of the one that is run. */
async function buildProgram(host: Host, words: readonly string[], ended: (exitCode: number) => void): Promise<Command> {
	const root = new Command("kvasir");
	prepare(root, host)
		.version(programVersion(), "-V, --version")
		.description("One very large mixture-of-experts model, served together.")
		.helpCommand(false)
		.addHelpText(
			"after",
			"\nExample:\n  kvasir demo\n\nkvasir <command> --help explains a command and shows an example.",
		);
	withoutCommand(root, () => root.outputHelp());
	for (const entry of catalog) {
		const path = entry.path.split(" ");
		const command = prepare(new Command(path.at(-1)), host).description(entry.summary);
		groupOf(root, host, path.slice(0, -1)).addCommand(command);
		if (words.join(" ") === entry.path) declare(command, await entry.load(), host, ended);
	}
	return root;
}

/** The command that holds others, such as `gateway invite`, made at its first use; no words: the program itself. */
function groupOf(root: Command, host: Host, path: readonly string[]): Command {
	if (path.length === 0) return root;
	const parent = groupOf(root, host, path.slice(0, -1));
	const there = parent.commands.find((command) => command.name() === path.at(-1));
	if (there) return there;
	const group = prepare(new Command(path.at(-1)), host)
		.description(groups[path.join(" ")]!)
		.helpCommand(false);
	withoutCommand(group, () => unknownCommand(undefined, group));
	parent.addCommand(group);
	return group;
}

/** What happens where no command follows; a word that is none is refused with the nearest one, whatever options came with it. */
function withoutCommand(parent: Command, alone: () => void): void {
	parent.usage("<command>").allowUnknownOption().allowExcessArguments();
	parent.action(() => {
		const first = parent.args.find((arg) => arg !== "--json");
		if (first?.startsWith("-")) {
			throw new KvasirError("usage", `Cannot read the command line: unknown option "${first}"`);
		}
		if (first !== undefined) unknownCommand(first, parent);
		alone();
	});
}

function unknownCommand(word: string | undefined, parent: Command): never {
	const names = parent.commands.map((command) => command.name());
	const near = word === undefined ? null : nearestName(word, names);
	const said = word === undefined ? `"${parent.name()}" needs a command` : `unknown command "${word}"`;
	throw new KvasirError("usage", `Cannot run kvasir: ${said}`, {
		hint: near ? `Did you mean "${near}"?` : `Commands: ${names.join(", ")}`,
	});
}

function prepare(command: Command, host: Host): Command {
	return command
		.exitOverride()
		.allowExcessArguments(false)
		.configureHelp({ optionDescription: describedAlready })
		.configureOutput({
			writeOut: (text) => host.stdout.write(text),
			// Errors are printed once, by printError.
			writeErr: () => {},
			outputError: () => {},
		});
}

/** Without what commander would add, such as `preset: ""`: the description says all of it. */
function describedAlready({ description }: Option): string {
	return description;
}

function declare(command: Command, spec: CommandSpec, host: Host, ended: (exitCode: number) => void): void {
	for (const { name, about } of spec.operands ?? []) command.argument(name, about);
	addOptions(command, spec.section, spec.options);
	addOptions(command, null, globalOptions);
	command.addHelpText("after", `\nExample:\n  ${spec.example.replaceAll("\n", "\n  ")}`);
	command.action(async () => {
		const { runCommand } = await import("./run-command.ts");
		const flags = command.opts() as Record<string, readonly string[]>;
		ended(await runCommand(spec, { flags, operands: command.args, host, declarations: loadAll }));
	});
}

function addOptions(command: Command, section: string | null, specs: OptionSpecs): void {
	for (const [key, spec] of Object.entries(specs)) {
		const option = new Option(spec.flags, `${spec.about} (${describe(section, spec)})`);
		option.attributeName = () => key;
		// Raw texts, all of them: readOption reads them, so that flags, environment and file mean the same.
		option.argParser((text: string, before: string[] | undefined) => {
			// What follows an option without its value is the next option, not the value.
			if (command.options.some(({ long }) => long === text)) throw valueMissing(spec, text);
			return [...(before ?? []), text];
		});
		if (spec.kind === "switch" || option.optional) option.preset("");
		command.addOption(option);
	}
}

function valueMissing(spec: OptionSpec<unknown>, next: string): KvasirError {
	return new KvasirError("usage", `Cannot read the command line: ${spec.flags} has no value, ${next} follows`, {
		hint: `--${flagName(spec)}: ${spec.about}`,
	});
}

function describe(section: string | null, spec: OptionSpec<unknown>): string {
	const shown = spec.fallback;
	const scalar = (typeof shown === "string" && shown !== "") || typeof shown === "number";
	return `${scalar ? `default: ${shown}, ` : ""}env: ${environmentName(section, spec)}`;
}

function usageError(error: CommanderError): KvasirError {
	const message = error.message.replace(/^error: /, "").replace(/\s+/g, " ");
	const [said, hint] = message.split(/ \((?=Did you mean)/);
	return new KvasirError("usage", `Cannot read the command line: ${said}`, {
		hint: hint ? hint.replace(/\)$/, "") : "kvasir --help lists the commands, kvasir <command> --help their options",
	});
}
