#!/bin/sh
# Measures the meter's own cost: instructions per operation with valgrind's callgrind (Debian:
# valgrind), and operations per second without storage. Produces figures of
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
# The difference of two runs leaves out the cost of starting and ending.
echo "$(((($(instructions 200000) - $(instructions 100000))) / 100000)) instructions per operation"
"$bin"
