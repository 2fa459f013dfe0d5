// SPDX-License-Identifier: MIT
//
// How the browser tests tell what they saw: a line a test, what failed with its reason, and the sum that
// tests/run.sh adds up.

const first = (text, n) => String(text ?? "").split("\n").slice(0, n).join("\n    ");

export default async function* (events) {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of events) {
    if (type === "test:pass" && data.skip !== undefined) {
      yield `skip ${data.name.replaceAll(" ", "-")} ${data.skip}\n`;
    } else if (type === "test:pass") {
      passed += 1;
      yield `ok ${data.name} (${(data.details.duration_ms / 1000).toFixed(1)} s)\n`;
    } else if (type === "test:fail") {
      failed += 1;
      const { error } = data.details;
      yield `FAIL ${data.name}: ${first((error.cause ?? error).stack ?? error.message, 30)}\n`;
    } else if (type === "test:diagnostic" && !/^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /.test(data.message)) {
      yield `     ${data.message}\n`;
    } else if (type === "test:stdout" || type === "test:stderr") {
      yield data.message;
    }
  }
  yield `${passed} passed, ${failed} failed\n`;
}
