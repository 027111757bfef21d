#!/bin/sh
# Measures files four times as large as memory on any machine: the meter runs in a cgroup whose
# memory, page cache included, is limited. Needs root, and cgroup v1 memory or v2.
#
#   benches/larger-than-memory.sh TENUTO DIR [MEMORY_MIB]     MEMORY_MIB: 512
#
# DIR is a directory on the storage to be measured, with four times MEMORY_MIB of free space. Runs
# `meter study cache` on a file of half that memory and on one of four times it: only the first can
# be in the cache.
set -eu

tenuto=$(realpath "$1")
dir=$(mktemp -d "$(realpath "$2")/tenuto-larger-XXXXXX")
memory=${3:-512}
group=tenuto-larger-$$

cleanup() {
    rmdir "/sys/fs/cgroup/memory/$group" "/sys/fs/cgroup/$group" "$dir" 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 1' INT TERM

if [ -d /sys/fs/cgroup/memory ]; then
    at=/sys/fs/cgroup/memory/$group
    mkdir "$at"
    echo "${memory}M" >"$at/memory.limit_in_bytes"
else
    at=/sys/fs/cgroup/$group
    echo +memory >/sys/fs/cgroup/cgroup.subtree_control
    mkdir "$at"
    echo "${memory}M" >"$at/memory.max"
fi

for size in $((memory / 2)) $((memory * 4)); do
    echo "$size MiB of files, $memory MiB of memory:"
    # shellcheck disable=SC2016 # the shell in the group expands them
    sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$at" \
        "$tenuto" meter study cache --target "$dir" --size "${size}MiB" --duration 3s
done
