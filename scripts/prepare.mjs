// `npm ci` leaves a runnable kvasir: builds dist unless it is already there (as it is in the packed tarball).
import { existsSync } from "node:fs";

if (!existsSync(new URL("../dist/bin/kvasir.js", import.meta.url))) await import("./build.mjs");
