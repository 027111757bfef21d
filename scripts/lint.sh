#!/bin/sh
# Checks format, lints and repository rules; run through scripts/rust.sh.
#
# A lint warning is an error only with the Rust release that this code is tested with: a newer
# clippy has new lints, and these must not stop a build. With LINT_WITH_BUILD=1, scripts/test.sh
# lints what it compiles, and clippy does not run here.
set -eu
cd "$(dirname "$0")/.."

have() { # whether cargo's component $1 is installed, or rustup can add it
    cargo "$1" --version >/dev/null 2>&1 && return 0
    command -v rustup >/dev/null 2>&1 && rustup component add "$2" </dev/null >/dev/null 2>&1
}

if have fmt rustfmt; then
    cargo fmt --all --check
else
    echo "note: formatting not checked: cargo fmt is not installed (rustup component add rustfmt)"
fi

if have clippy clippy && [ -n "${LINT_WITH_BUILD:-}" ]; then
    echo "lints are checked while the tests are compiled"
elif have clippy clippy; then
    case "$(rustc --version)" in
        "rustc $RUST_TESTED "*) strict='-D warnings' ;;
        *) strict='' ;;
    esac
    # shellcheck disable=SC2086
    cargo clippy --workspace --all-targets --locked -- $strict
else
    echo "note: lints not checked: cargo clippy is not installed (rustup component add clippy)"
fi

if [ -x console/node_modules/.bin/svelte-check ]; then
    npm run --silent --prefix console check
else
    echo "note: the console is not checked: its packages are not installed (scripts/console.sh)"
fi

cargo xtask check
