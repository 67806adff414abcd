// Prints two digests of this machine (docs/numerics.md), from dist: of the canonical-1 kernels, and of a backbone's logits. For other
// Node versions and processors. Exit code 1 when one is not the published one.
import { logitsDigest, pinnedLogits } from "../dist/src/backbone/decode/logits-check.js";
import { openCanonicalEngine } from "../dist/src/experts/canonical/canonical-engine.js";
import { canonicalDigest, selfCheck } from "../dist/src/experts/self-check.js";

const engine = await openCanonicalEngine({ memoryBytes: 24 * 1024 ** 2 });
const digest = await selfCheck(engine);
await engine.close();
const logits = await logitsDigest();
console.log(`${digest} ${logits}`);
process.exitCode = digest === canonicalDigest && logits === pinnedLogits ? 0 : 1;
