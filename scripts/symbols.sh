#!/bin/sh
# Moves the debug symbols of a program into a file of their own:  scripts/symbols.sh PROGRAM
#
# The program keeps the name and checksum of that file, PROGRAM.debug. `gdb`, `perf` and the
# program's own backtraces find it in the same directory, or by its build id in /usr/lib/debug.
# A program without debug symbols stays as it is.
set -eu
program=$1
objdump --section-headers "$program" | grep -q ' \.debug_info ' || exit 0
cd "$(dirname "$program")"
name=$(basename "$program")
objcopy --only-keep-debug "$name" "$name.debug"
# A new file, not the old one changed: cargo has a link to the old one in `deps/` and relies on it.
objcopy --strip-all --remove-section=.comment --add-gnu-debuglink="$name.debug" "$name" "$name.stripped"
chmod 644 "$name.debug"
mv "$name.stripped" "$name"
