#!/bin/sh
# Instructions that an admission decision takes, by valgrind's callgrind (Debian: valgrind). Makes the
# figures in docs/reference/figures.md. Says: case, instructions.
set -eu
cd "$(dirname "$0")/.."
cargo bench --quiet -p scheduler --bench instructions --no-run
bin=$(ls -t target/release/deps/instructions-* | grep -v '\.d$' | head -n 1)
out=$(mktemp)
trap 'rm -f "$out" "$out.log"' EXIT
for case in ${*:-$("$bin" --list)}; do
    valgrind --tool=callgrind --callgrind-out-file="$out" --toggle-collect='*counted*' \
        "$bin" "$case" >/dev/null 2>"$out.log"
    awk -v case="$case" '/Collected/ { printf "%-16s %10d\n", case, $4 }' "$out.log"
done
