// The module's exports: what the mixers do between their projections, stage by stage, and the elementary functions beneath.
// Pointers and sizes are bytes unless their name says otherwise; widths of heads are multiples of 4. Nothing here keeps state.
export { finite } from "../../../experts/canonical/kernel/activation";
export { attend, finishRead, prepareQueries, remember, rotations } from "./attention";
export { cosine, exponential, logarithm, power, sigmoid, sine, softplus } from "./binary64";
export { convolve, deltaRule, gatedNorm, normaliseKeys, openGates } from "./delta-net";
