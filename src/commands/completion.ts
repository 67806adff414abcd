import { KvasirError } from "../errors.ts";
import { defineCommand } from "./program/command.ts";
import type { Declaration } from "./program/declaration.ts";
import { flagName } from "./program/options.ts";
import { globalOptions } from "./program/settings.ts";

// Every script is the same table read by another shell: after these words, these words may follow.
type Follow = ReadonlyMap<string, readonly string[]>;

const scripts: Readonly<Record<string, (follow: Follow) => string>> = {
	bash: (follow) => `_kvasir() {
  local words="\${COMP_WORDS[*]:1:COMP_CWORD-1}" path="" word
  for word in $words; do [[ $word == -* ]] || path="\${path:+$path }$word"; done
  case "$path" in
${[...follow].map(([path, words]) => `    "${path}") COMPREPLY=($(compgen -W "${words.join(" ")}" -- "\${COMP_WORDS[COMP_CWORD]}")) ;;`).join("\n")}
    *) COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")) ;;
  esac
}
complete -F _kvasir kvasir`,
	zsh: (follow) => `#compdef kvasir
autoload -U +X bashcompinit && bashcompinit
${scripts.bash!(follow)}`,
	fish: (follow) => `complete -c kvasir -f
function __kvasir_path; string join ' ' (string match -v -- '-*' (commandline -opc)[2..]); end
${[...follow].map(([path, words]) => `complete -c kvasir -n 'test (__kvasir_path | string collect --allow-empty) = "${path}"' -a '${words.join(" ")}'`).join("\n")}`,
	powershell: (follow) => `Register-ArgumentCompleter -Native -CommandName kvasir -ScriptBlock {
  param($word, $ast, $position)
  $path = (($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" } | Where-Object { $_ -notlike '-*' -and $_ -ne $word }) -join ' ')
  $follow = @{
${[...follow].map(([path, words]) => `    '${path}' = '${words.join(" ")}'`).join("\n")}
  }
  if ($follow.ContainsKey($path)) { $follow[$path] -split ' ' | Where-Object { $_ -like "$word*" } }
}`,
};

export const completionCommand = defineCommand({
	path: "completion",
	section: "completion",
	summary: "a completion script for bash, zsh, fish or powershell",
	operands: [{ name: "<shell>", about: "bash, zsh, fish or powershell" }],
	options: {},
	example: "kvasir completion bash > ~/.local/share/bash-completion/completions/kvasir",
	async run(context, _options, [shell = ""]) {
		const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
		if (!script) {
			throw new KvasirError("usage", `Cannot complete for "${shell}": not one of ${Object.keys(scripts).join(", ")}`);
		}
		return { data: { script: script(whatFollows(await context.declarations())) } };
	},
	render: ({ script }) => script,
});

function whatFollows(commands: readonly Declaration[]): Follow {
	const follow = new Map<string, string[]>([["", []]]);
	const add = (path: string, word: string) => {
		const words = follow.get(path) ?? [];
		follow.set(path, words);
		if (!words.includes(word)) words.push(word);
	};
	for (const { path, options } of commands) {
		const words = path.split(" ");
		for (const [index, word] of words.entries()) add(words.slice(0, index).join(" "), word);
		for (const spec of Object.values({ ...options, ...globalOptions })) add(path, `--${flagName(spec)}`);
	}
	return follow;
}
