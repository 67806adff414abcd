import { expect, test } from "vitest";
import { junitXml } from "./junit.ts";
import type { VerifyReport } from "./report.ts";
import { stepSummary } from "./step-summary.ts";

const report: VerifyReport = {
	model: { name: "tiny", modelId: "ab", weights: "file", layers: 4, experts: 16, topK: 4, hidden: 256 },
	remote: {
		layers: [0, 1],
		asked: 104,
		answered: 100,
		fallback: 4,
		retried: 2,
		workers: [{ key: "Abc", class: "ort:1|cpu", pairs: 100, rttMsP50: 12.34, computeMsP50: 1.2 }],
	},
	tokens: { same: 8, total: 8, text: " Paris." },
	argmax: { same: 13, total: 13 },
	logits: { identical: false, sha256: "cd", cosineMin: 0.5, cosineMean: 0.9, cosineMedian: 1, maxAbs: 3, klMax: 1 },
	partials: { pairs: 100, identical: 99, worst: 0.7 },
	firstDivergence: {
		prompt: 'a "<b>" & \u0007\n',
		position: 3,
		layer: 1,
		expert: 9,
		worker: "Abc",
		local: 1,
		remote: -1,
	},
	wire: { messages: 16, wholeRows: 0, q14: 16, bytesSent: 160_992, bytesReceived: 1_277_952 },
	served: { pairs: 100, bytes: 102_400, units: 0.1024, kvr: "0.0007168", nano: "716800" },
	timing: { localTokensPerSecond: 25, remoteTokensPerSecond: 17, roundTrips: 32 },
	verdict: "different",
};

test("junitXml() is one test case for each comparison, with what failed, as valid XML", () => {
	expect(junitXml(report)).toMatchInlineSnapshot(`
		"<?xml version="1.0" encoding="UTF-8"?>
		<testsuites tests="6" failures="4">
		  <testsuite name="kvasir verify tiny" tests="6" failures="4">
		    <testcase classname="kvasir.verify" name="tokens"/>
		    <testcase classname="kvasir.verify" name="argmax"/>
		    <testcase classname="kvasir.verify" name="logits">
		      <failure message="least cosine 0.5, largest difference 3"/>
		    </testcase>
		    <testcase classname="kvasir.verify" name="partials">
		      <failure message="99 of 100 identical, worst 0.7"/>
		    </testcase>
		    <testcase classname="kvasir.verify" name="coverage">
		      <failure message="100 of 104 pairs answered, 4 computed here, 2 retried"/>
		    </testcase>
		    <testcase classname="kvasir.verify" name="verdict">
		      <failure message="different, first at prompt &quot;a \\&quot;&lt;b&gt;\\&quot; &amp; \\u0007\\n&quot;, position 3, layer 1, expert 9, worker Abc: 1 here, -1 there"/>
		    </testcase>
		  </testsuite>
		</testsuites>
		"
	`);
});

test("stepSummary() tells verdict, checks, workers and pay, and nothing in it breaks a table", () => {
	const text = stepSummary(report);
	expect(text).toContain("### kvasir verify: different, first at prompt");
	expect(text).toContain("| partials | **fail** | 99 of 100 identical, worst 0.7 |");
	expect(text).toContain("| `Abc` | ort:1\\|cpu | 100 | 12.3 | 1.2 |");
	expect(text).toContain("Served 100 pairs, 102400 bytes: 0.0007168 KVR.");
	expect(text).not.toContain("<b>");
});
