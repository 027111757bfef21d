#!/usr/bin/env bash
# Prints the tests of the last run that were skipped, and the missing requirement of each. The tests
# append to the list (crates/testkit), one line each: need, test, reason.
set -eu
list=${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/skipped-tests
if [ ! -s "$list" ]; then
  echo "skipped: none"
  exit 0
fi
sort -u "$list" | awk -F '\t' '
  { count[$1]++; total++; names = names "  " $2 ": needs " $1 " (" $3 ")\n" }
  END {
    for (need in count) text = text (text ? ", " : "") need ": " count[need]
    printf "skipped: %d (%s)\n%s", total, text, names
  }'
