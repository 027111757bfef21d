#!/bin/sh
# Installs missing system packages.
#
#   scripts/deps.sh NEED...      NEED: build, demo, cluster, agent, package, test
#                                (packages.txt)
#
# Installed packages are skipped, so on a prepared machine the script changes nothing and needs no
# rights. Packages marked `?` are optional: without the right to install them, the script continues.
# Packages `go:MODULE@VERSION` are built with Go 1.21 or newer, into ~/.local/bin.
set -eu
cd "$(dirname "$0")/.."

installed() {
    dpkg-query --show --showformat '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
}

missing_of() { # prints the packages of need $1 whose proof is absent, on one line
    while read -r need package proof; do
        [ "$need" = "$1" ] || continue
        case $proof in
            /*) [ -e "$proof" ] || printf '%s ' "$package" ;;
            dpkg) installed "$package" || printf '%s ' "$package" ;;
            *) command -v "$proof" >/dev/null 2>&1 || printf '%s ' "$package" ;;
        esac
    done <scripts/packages.txt
}

# Where programs that are built here are found; an empty environment has no HOME.
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
PATH=$PATH:$HOME/.local/bin
needed='' wanted='' built=''
for need in "$@"; do
    needed="$needed$(missing_of "$need")"
    for package in $(missing_of "$need?"); do
        case $package in
            go:*) case $built in *"${package#go:}"*) ;; *) built="$built ${package#go:}" ;; esac ;;
            *) wanted="$wanted$package " ;;
        esac
    done
done

command="apt-get install --yes --no-install-recommends"
if ! command -v apt-get >/dev/null 2>&1; then
    as_root=none
elif [ "$(id -u)" = 0 ]; then
    as_root=''
elif command -v sudo >/dev/null 2>&1; then
    # Without a terminal, sudo works only if it needs no password.
    if [ -t 0 ]; then as_root='sudo'; else as_root='sudo -n'; fi
else
    as_root=none
fi

install_with_apt() {
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # lists of words on purpose
    $as_root $command "$@" </dev/null && return 0
    # The package lists of a fresh machine are empty or old.
    $as_root apt-get update </dev/null && $as_root $command "$@" </dev/null
}

if [ -n "$needed" ]; then
    echo "missing system packages: $needed"
    # shellcheck disable=SC2086
    if [ "$as_root" = none ] || ! install_with_apt $needed; then
        echo "error: these system packages are missing and could not be installed: $needed" >&2
        echo "hint: as root, run: apt-get update && $command $needed" >&2
        exit 1
    fi
fi
if [ -n "$wanted" ]; then
    # shellcheck disable=SC2086
    if [ "$as_root" = none ] || ! install_with_apt $wanted; then
        echo "note: continuing without $wanted(tests that need them will fail with a message)"
        echo "hint: as root, run: apt-get update && $command $wanted"
    fi
fi

build_with_go() { # MODULE@VERSION
    go version >/dev/null 2>&1 || return 1
    echo "building $1 (2 min)"
    # Nothing is left but the program.
    work=$(mktemp -d)
    GOPATH=$work GOCACHE=$work/cache GOFLAGS=-modcacherw GOBIN=$HOME/.local/bin \
        GOTOOLCHAIN=auto timeout 300 go install -trimpath -ldflags '-s -w' "$1" >"$work/log" 2>&1
    status=$?
    [ "$status" = 0 ] || tail -n 3 "$work/log"
    rm -rf "$work"
    return "$status"
}
for module in $built; do
    build_with_go "$module" ||
        echo "note: continuing without $module (tests that need it are skipped, and named at the end);" \
            "it is built where Go 1.21 or newer is installed"
done
