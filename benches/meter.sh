#!/bin/sh
# What the meter itself costs for an operation: instructions, by valgrind's callgrind (Debian:
# valgrind), and operations a second against a target that is nothing. Makes figures of
# docs/reference/figures.md.
set -eu
cd "$(dirname "$0")/.."
cargo bench --quiet -p meter --bench null --no-run
bin=$(ls -t target/release/deps/null-* | grep -v '\.d$' | head -n 1)
out=$(mktemp)
trap 'rm -f "$out" "$out.log"' EXIT
instructions() {
    valgrind --tool=callgrind --callgrind-out-file="$out" "$bin" --count "$1" \
        >/dev/null 2>"$out.log"
    awk '/Collected/ { print $4 }' "$out.log"
}
# Twice, so that what it costs to begin and to end is not counted.
echo "$(((($(instructions 200000) - $(instructions 100000))) / 100000)) instructions for an operation"
"$bin"
