import type { OptionSpecs } from "./options.ts";

/** How a command is typed: what help, completion, settings and the docs are made from. */
export interface Declaration<O extends OptionSpecs = OptionSpecs> {
	/** Such as `wallet create`. */
	readonly path: string;
	/** Its section in kvasir.toml and in `KVASIR_<SECTION>_<FLAG>`. */
	readonly section: string;
	readonly summary: string;
	/** Positional arguments as commander writes them: `<url>`, `[file]`. */
	readonly operands?: readonly { readonly name: string; readonly about: string }[];
	readonly options: O;
	readonly example: string;
}
