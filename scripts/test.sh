#!/usr/bin/env bash
# Builds and runs all tests; run through scripts/rust.sh.
#
# The large test programs wait for servers, players and disks longer than they compute, and at the
# end of each a slow test runs alone. `cargo test` runs one program after another; this script runs
# two at a time, the slowest first, with one thread for each processor (half as many more where a
# program waits most of the time), and beside them, at the lowest priority, the tests in the
# documentation and the programs that only compute. It prints the output of a program when the
# program has ended, and that of failed tests again at the end.
#
# With LINT_WITH_BUILD=1, clippy compiles the tests, so that each crate is compiled once for both.
set -euo pipefail
cd "$(dirname "$0")/.."

slowest='cli playback console documents hostile serve'
# Wait for programs and players for more than half of their time.
waiting='cli playback emulated'
# In virtual time, or in no time: nothing in them depends on when they run.
computing='worlds studies it popular slow brim scenarios model absurd power_cut'

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export outputs=$target/test-outputs
rm -rf "$outputs" "$target/skipped-tests"

run() { # runs a program in the directory of its package, as cargo does: DIRECTORY<tab>PROGRAM
  local directory program start=$SECONDS
  IFS=$'\t' read -r directory program <<<"$1"
  local output=$outputs/${program##*/} name=${program##*/} used
  if [[ " $waiting " == *" ${name%-*} "* ]]; then
    RUST_TEST_THREADS=$((RUST_TEST_THREADS + (RUST_TEST_THREADS + 1) / 2))
  fi
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
export waiting
export -f run

built=(--tests)
if [ -n "${LINT_WITH_BUILD:-}" ] && cargo clippy --version >/dev/null 2>&1; then
  RUSTC_WORKSPACE_WRAPPER=$(rustc --print sysroot)/bin/clippy-driver
  export RUSTC_WORKSPACE_WRAPPER
  case "$(rustc --version)" in
    # How cargo-clippy hands on `-D warnings`.
    "rustc $RUST_TESTED "*) export CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ ;;
  esac
  built+=(--benches)
fi

# The messages of cargo that name a test program, as DIRECTORY<tab>PROGRAM. Benchmarks are not run.
is_bench='/"kind":\["bench"\]/d'
is_test='/"profile":{[^}]*"test":true/'
parts='.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"executable":"\([^"]*\)".*'
programs=$(
  cargo test --workspace --locked "${built[@]}" --no-run \
    --message-format=json-render-diagnostics |
    sed -n "$is_bench; ${is_test}s/$parts/\1\t\2/p"
)
if [ -z "$programs" ]; then
  echo "error: cargo named no test program in its messages, as scripts/test.sh reads them" >&2
  exit 1
fi
programs+=$'\n'$PWD/console$'\t'$PWD/scripts/console-tests.sh
mkdir "$outputs"
# With one thread, tests have no names (crates/testkit).
processors=$(nproc)
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((processors > 1 ? processors : 2))}
named() { # the programs of these names, in their order: NAME...
  local name
  for name in "$@"; do grep "/$name-[^/]*$" <<<"$programs" || true; done
}
# shellcheck disable=SC2086  # lists of words on purpose
computed=$(named $computing)
run_all() { # runs the programs on standard input, so many at a time: COUNT
  xargs -d '\n' -n 1 -P "$1" bash -c 'run "$1"' -
}
(
  renice -n 19 -p "$BASHPID" >/dev/null
  documented=$outputs/doc-tests
  cargo test --workspace --locked --doc >"$documented" 2>&1 ||
    echo 'documentation tests' >"$documented.failed"
  flock "$outputs" cat "$documented"
  # Two, so that both processors have work when the others have ended.
  run_all 2 <<<"$computed"
) &
# shellcheck disable=SC2086
{
  named $slowest
  echo "$programs"
} | grep -vxFf <(echo "$computed") | awk '!seen[$0]++' | run_all 2
wait

status=0
for failed in "$outputs"/*.failed; do
  [ -e "$failed" ] || continue
  status=1
  echo "failed: $(cat "$failed")"
  # A program that was killed has no list of failures.
  sed -n '/^failures:$/,$p' "${failed%.failed}" | grep . || tail -n 50 "${failed%.failed}"
done
scripts/skipped.sh
exit "$status"
