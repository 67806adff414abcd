import { formatTable } from "../ui/table.ts";
import { defineCommand } from "./program/command.ts";
import { readConfigFile } from "./program/config-file.ts";
import { flagName, type OptionSpecs, toggle } from "./program/options.ts";
import { globalOptions, resolveSettings } from "./program/settings.ts";

interface Row {
	readonly section: string;
	readonly key: string;
	readonly value: unknown;
	readonly origin: string;
}

export const configShowCommand = defineCommand({
	path: "config show",
	section: "config",
	summary: "every setting with its value and where it came from",
	options: {
		origin: toggle("--origin", "say where each value came from: flag, KVASIR_..., kvasir.toml or default"),
	},
	example: "kvasir config show --origin",
	async run(context, { origin }) {
		const commands = await context.declarations();
		const file = await readConfigFile(context.home, async () => commands);
		const rows = new Map<string, Row>();
		const { home: _, ...everywhere } = globalOptions;
		const declared = [{ section: null, options: everywhere }, ...commands];
		for (const { section, options } of declared as readonly { section: string | null; options: OptionSpecs }[]) {
			const sources = { flags: {}, env: context.host.env, file: file[section ?? ""] ?? {} };
			const settings = resolveSettings(section, options, sources);
			for (const [key, setting] of Object.entries(settings)) {
				const name = flagName(options[key]!);
				rows.set(`${section}.${name}`, {
					section: section ?? "",
					key: name,
					value: setting.value ?? null,
					origin: setting.origin,
				});
			}
		}
		return { data: { home: context.home, withOrigin: origin, settings: [...rows.values()] } };
	},
	render({ home, settings, withOrigin }) {
		const shown = (value: unknown) => (typeof value === "object" ? JSON.stringify(value) : String(value));
		const head = ["section", "setting", "value", ...(withOrigin ? ["origin"] : [])];
		const cells = settings.map((row) => [row.section, row.key, shown(row.value), ...(withOrigin ? [row.origin] : [])]);
		return `home  ${home}\n\n${formatTable(head, cells)}`;
	},
});
