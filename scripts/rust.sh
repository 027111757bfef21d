#!/bin/sh
# Runs a command with a sufficiently new Rust:  scripts/rust.sh cargo build
#
# Uses the installed Rust if it has `rust-version` of Cargo.toml or newer. Otherwise it uses
# rustup's toolchain $tested, which it downloads the first time. It does not change the user's
# default toolchain or the PATH in a profile.
set -eu

# The release with which this code is linted and tested. Newer releases build it, too.
tested=1.95.0

# An empty environment (env -i) has no HOME, which cargo and rustup need.
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
export HOME
# Programs that scripts/deps.sh built.
PATH=$PATH:$HOME/.local/bin

root=$(cd "$(dirname "$0")/.." && pwd)
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
cargo_home=${CARGO_HOME:-$HOME/.cargo}

new_enough() { # whether cargo on the PATH works and is at least $needed
    version=$(cargo --version 2>/dev/null | cut -d' ' -f2 | cut -d- -f1) || return 1
    [ -n "$version" ] || return 1
    lowest=$(printf '%s\n%s\n' "$needed" "$version" | sort -V | head -n 1)
    [ "$lowest" = "$needed" ]
}

fetch() { # downloads rustup's installer from $1; both URLs have the same script
    curl --proto '=https' --tlsv1.2 -sSf "$1" -o "$script"
}

run() {
    RUST_TESTED=$tested
    export RUST_TESTED PATH
    exec "$@"
}

if new_enough; then run "$@"; fi
PATH=$cargo_home/bin:$PATH
if new_enough; then run "$@"; fi

# From here on the tested toolchain is used, whatever rustup's default is.
RUSTUP_TOOLCHAIN=$tested
export RUSTUP_TOOLCHAIN
if new_enough; then run "$@"; fi

echo "Rust $needed or newer is not installed; downloading $tested with rustup"
script=$(mktemp)
trap 'rm -f "$script"' EXIT
if command -v rustup >/dev/null 2>&1; then
    rustup toolchain install "$tested" --profile minimal --component rustfmt --component clippy \
        --no-self-update </dev/null || true
elif fetch https://sh.rustup.rs || fetch https://static.rust-lang.org/rustup/rustup-init.sh; then
    sh "$script" -y --no-modify-path --profile minimal --default-toolchain "$tested" \
        --component rustfmt --component clippy </dev/null || true
fi
rm -f "$script"
if new_enough; then run "$@"; fi

echo "error: Rust $needed or newer is needed and could not be downloaded" >&2
echo "hint: with network access, run: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --default-toolchain $tested" >&2
exit 1
