#!/usr/bin/env node
// argv and environment in, exit code out. onnxruntime reads this when it is loaded, so it is set before anything is imported.
process.env.ORT_DISABLE_TELEMETRY = "1";

const { runOnThisProcess } = await import("../src/commands/program/run-on-this-process.ts");
await runOnThisProcess();
