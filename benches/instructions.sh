#!/bin/sh
# Counts the instructions of an admission decision with valgrind's callgrind (Debian: valgrind), and
# measures its processor time in microseconds, the mean of 2,000. Produces figures of
# docs/reference/figures.md.
set -eu
cd "$(dirname "$0")/.."
cargo bench --quiet -p scheduler --bench instructions --no-run
bin=$(ls -t target/release/deps/instructions-* | grep -v '\.d$' | head -n 1)
out=$(mktemp)
trap 'rm -f "$out" "$out.log"' EXIT
for case in ${*:-$("$bin" --list)}; do
    valgrind --tool=callgrind --callgrind-out-file="$out" --toggle-collect='*counted*' \
        "$bin" "$case" >/dev/null 2>"$out.log"
    micros=$("$bin" "$case" --time)
    awk -v case="$case" -v us="$micros" \
        '/Collected/ { printf "%-16s %10d instructions %9.1f us\n", case, $4, us }' "$out.log"
done
