import { isIP } from "node:net";
import { base58 } from "@scure/base";
import { isModelName } from "../../splice/targets.ts";
import type { Reader } from "./options.ts";

// What the texts of options mean. Each reader says in words what it expects; none of them touches the disk or the network.

export const text: Reader<string> = { expected: "a text", read: (input) => input };
export const modelName: Reader<string> = {
	expected: "a model's name: letters, digits, '.', '_' and '-'",
	read: (input) => (isModelName(input) ? input : undefined),
};
export const path: Reader<string> = { expected: "a path", read: (input) => input || undefined };

/** A whole number in [min, max]. */
export function count(min: number, max: number): Reader<number> {
	return {
		expected: `a whole number from ${min} to ${max}`,
		read: (input) => within(/^\d{1,15}$/.test(input) ? Number(input) : Number.NaN, min, max),
	};
}

/** A decimal number in [min, max]. */
export function decimal(min: number, max: number): Reader<number> {
	return {
		expected: `a number from ${min} to ${max}`,
		read: (input) => within(/^\d{1,9}(\.\d{1,9})?$/.test(input) ? Number(input) : Number.NaN, min, max),
	};
}

function within(number: number, min: number, max: number): number | undefined {
	return number >= min && number <= max ? number : undefined;
}

/** One of a few words. */
export function oneOf<const W extends string>(...words: readonly W[]): Reader<W> {
	return { expected: `one of ${words.join(", ")}`, read: (input) => words.find((word) => word === input) };
}

export interface HostPort {
	/** null: every interface. */
	readonly host: string | null;
	readonly port: number;
}

/** `host:port`, `[v6]:port`, `:port`; port 0 asks for any free one. */
export const hostPort: Reader<HostPort> = {
	expected: "an address such as 127.0.0.1:7301, [::1]:7301 or :7301",
	read(input) {
		const found = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]{0,253})):(\d{1,5})$/.exec(input);
		if (!found || Number(found[3]) > 65535) return undefined;
		if (found[1] !== undefined && isIP(found[1]) !== 6) return undefined;
		return { host: found[1] ?? (found[2] || null), port: Number(found[3]) };
	},
};

/** The text of an address for a URL. */
export function formatHostPort({ host, port }: HostPort): string {
	const name = host ?? "127.0.0.1";
	return `${isIP(name) === 6 ? `[${name}]` : name}:${port}`;
}

const byteUnits: Readonly<Record<string, number>> = { "": 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** `12GiB`, `512M`, `1073741824`: bytes. */
export const byteSize: Reader<number> = {
	expected: "a size such as 12GiB or 512MiB",
	read(input) {
		const found = /^(\d{1,9}(?:\.\d{1,3})?|\d{1,15}) ?([KMGT]?)(?:i?B)?$/i.exec(input);
		const bytes = found ? Math.floor(Number(found[1]) * byteUnits[found[2]!.toUpperCase()]!) : 0;
		return bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined;
	},
};

/** A base58 key of 32 bytes, kept as text. */
export const address: Reader<string> = {
	expected: "a base58 key of 32 bytes",
	read(input) {
		try {
			return base58.decode(input).length === 32 ? input : undefined;
		} catch {
			return undefined;
		}
	},
};

/** Sorted layer numbers; `all` stays the word, as the model is not known yet. */
export type LayerChoice = "all" | readonly number[];

/** `all`, `none`, `0,3`, `0-5,9`. */
export const layers: Reader<LayerChoice> = {
	expected: "all, none, or layers such as 0,3 or 0-5",
	read(input) {
		if (input === "all") return "all";
		return input === "none" ? [] : numberRanges(input, 1023);
	},
};

/** `LAYERS:FIRST-LAST`, kept as text, as the model is not known yet: `all:0-7`, `0,2-4:3`, `0-5:all`. */
export const heldRange: Reader<string> = {
	expected: "LAYERS:FIRST-LAST, such as all:0-7",
	read(input) {
		const [layers = "", experts = "", ...rest] = input.split(":");
		const read = (part: string) => part === "all" || numberRanges(part, 9999) !== undefined;
		return read(layers) && read(experts) && !experts.includes(",") && rest.length === 0 ? input : undefined;
	},
};

/** A device to compute on, kept as text. */
export const gpuDevice: Reader<string> = {
	expected: "auto, webgpu, webgpu:ID, cuda, coreml or dml",
	read: (input) => (/^(auto|cuda|coreml|dml|webgpu(:.+)?)?$/.test(input) ? input : undefined),
};

function numberRanges(input: string, max: number): number[] | undefined {
	const numbers = new Set<number>();
	for (const part of input.split(",")) {
		const found = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part);
		const [first, last] = [Number(found?.[1]), Number(found?.[2] ?? found?.[1])];
		if (!found || first > last || last > max) return undefined;
		for (let number = first; number <= last; number++) numbers.add(number);
	}
	return [...numbers].sort((a, b) => a - b);
}
