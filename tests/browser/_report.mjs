// SPDX-License-Identifier: MIT
//
// How the browser tests tell what they saw: a line a test, what failed with its reason, and the sum that
// tests/run.sh adds up.

/** The reason in full, as tests add to it what they tried, and where. */
function reason(error) {
  const { message, stack } = error.cause ?? error;
  const places = String(stack ?? "").split("\n").filter((line) => /^ +at /.test(line));
  return [...String(message ?? error).split("\n").slice(0, 40), ...places.slice(0, 4)].join("\n    ");
}

export default async function* (events) {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of events) {
    if (/name does not match/.test(data.skip)) {
      continue; // --test-name-pattern
    }
    if (type === "test:pass" && data.skip !== undefined) {
      yield `skip ${data.name.replaceAll(" ", "-")} ${data.skip}\n`;
    } else if (type === "test:pass") {
      passed += 1;
      yield `ok ${data.name} (${(data.details.duration_ms / 1000).toFixed(1)} s)\n`;
    } else if (type === "test:fail") {
      failed += 1;
      yield `FAIL ${data.name}: ${reason(data.details.error)}\n`;
    } else if (type === "test:diagnostic" && !/^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /.test(data.message)) {
      yield `     ${data.message}\n`;
    } else if (type === "test:stdout" || type === "test:stderr") {
      yield data.message;
    }
  }
  yield `${passed} passed, ${failed} failed\n`;
}
