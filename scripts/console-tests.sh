#!/usr/bin/env bash
# Tests the console in a browser, against the program of the tests; scripts/test.sh runs it.
set -euo pipefail
cd "$(dirname "$0")/../console"
target=$(realpath -m "${CARGO_TARGET_DIR:-../target}")

needs() { # skips the tests, or fails where they are required: WHAT COMMAND...
  "${@:2}" >/dev/null 2>&1 && return 0
  if [[ ,${TENUTO_REQUIRE:-}, == *,console,* ]]; then
    echo "error: the console's tests need $1"
    exit 1
  fi
  printf 'console\tconsole\tneeds %s\n' "$1" >>"$target/skipped-tests"
  exit 0
}
needs "the built console (scripts/console.sh)" test -e dist/index.html
needs "Playwright (npm ci --prefix console)" test -x node_modules/.bin/playwright
needs "Chromium" command -v chromium
# One test needs it, and skips itself or fails.
command -v etcd >/dev/null || printf 'etcd\tconsole: director\tneeds etcd\n' >>"$target/skipped-tests"

export TENUTO=${TENUTO:-$target/debug/tenuto}
exec node_modules/.bin/playwright test --reporter=list
