#!/bin/sh
# Instructions that an admission decision takes, by valgrind's callgrind (Debian: valgrind), and
# microseconds: median and 90th percentile of 1,000 times. Makes figures of docs/reference/figures.md.
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
        '/Collected/ { printf "%-16s %10d instructions %s us\n", case, $4, us }' "$out.log"
done
