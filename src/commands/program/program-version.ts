import { readFileSync } from "node:fs";
import { packagePath } from "../../io/built.ts";

/** The version in package.json. */
export function programVersion(): string {
	return JSON.parse(readFileSync(packagePath("package.json"), "utf8")).version as string;
}
