// Prints the digest of this machine's canonical-1 kernels (docs/numerics.md), from dist: for other Node versions and processors.
// Exit code 1 when it is not the published one.
import { openCanonicalEngine } from "../dist/src/experts/canonical/canonical-engine.js";
import { canonicalDigest, selfCheck } from "../dist/src/experts/self-check.js";

const engine = await openCanonicalEngine({ memoryBytes: 24 * 1024 ** 2 });
const digest = await selfCheck(engine);
await engine.close();
console.log(digest);
process.exitCode = digest === canonicalDigest ? 0 : 1;
