#!/usr/bin/env bash
# Builds and runs all tests; run through scripts/rust.sh.
#
# The large test programs wait for servers, players and disks longer than they compute, and at the
# end of each a slow test runs alone. `cargo test` runs one program after another; this script runs
# two at a time, the slowest first, with one thread for each processor. It prints the output of a
# program when the program has ended, and that of failed tests again at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

slowest='playback cli documents hostile worlds serve studies'

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export outputs=$target/test-outputs
rm -rf "$outputs" "$target/skipped-tests"

run() { # runs a program in the directory of its package, as cargo does: DIRECTORY<tab>PROGRAM
  local directory program start=$SECONDS
  IFS=$'\t' read -r directory program <<<"$1"
  local output=$outputs/${program##*/} name=${program##*/} used
  name="${directory##*/}: ${name%-*}"
  (cd "$directory" && CARGO_MANIFEST_DIR=$directory exec "$program") >"$output" 2>&1 ||
    echo "$name" >"$output.failed"
  # User and system time of the program and its children; a pipe would make another process of it.
  times >"$output.times"
  used=$(tail -n 1 "$output.times")
  # One output after another.
  flock "$outputs" sh -c 'echo "     Ran $1 ($2 s, processor time $4)"; cat "$3"' - \
    "$name" $((SECONDS - start)) "$output" "$used"
}
export -f run

# The messages of cargo that name a test program, as DIRECTORY<tab>PROGRAM.
is_test='/"profile":{[^}]*"test":true/'
parts='.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"executable":"\([^"]*\)".*'
programs=$(
  cargo test --workspace --locked --tests --no-run --message-format=json-render-diagnostics |
    sed -n "${is_test}s/$parts/\1\t\2/p"
)
if [ -z "$programs" ]; then
  echo "error: cargo named no test program in its messages, as scripts/test.sh reads them" >&2
  exit 1
fi
mkdir "$outputs"
# With one thread, tests have no names (crates/testkit).
processors=$(nproc)
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((processors > 1 ? processors : 2))}
{
  for name in $slowest; do grep "/$name-[^/]*$" <<<"$programs" || true; done
  echo "$programs"
} | awk '!seen[$0]++' | xargs -d '\n' -n 1 -P 2 bash -c 'run "$1"' -

status=0
cargo test --workspace --locked --doc || status=1
for failed in "$outputs"/*.failed; do
  [ -e "$failed" ] || continue
  status=1
  echo "failed: $(cat "$failed")"
  # A program that was killed has no list of failures.
  sed -n '/^failures:$/,$p' "${failed%.failed}" | grep . || tail -n 50 "${failed%.failed}"
done
scripts/skipped.sh
exit "$status"
