#!/bin/sh
# Lowers the memory limit of a server's control group while viewers play, step by step, and prints
# what the kernel counts for the group and has pinned. Needs root, curl, ffmpeg, and the memory
# controller of control groups (version 1 or 2).
#
#   benches/shrinking-memory.sh TENUTO DIR [VIEWERS]     VIEWERS: 60
#
# DIR gets a store of 2 GiB for the time of the run. No viewer may stall.
set -eu

tenuto=$(realpath "$1")
dir=$(mktemp -d "$(realpath "$2")/tenuto-shrinking-XXXXXX")
viewers=${3:-60}
url=http://127.0.0.1:18087
group=tenuto-shrinking-$$
server='' player=''

if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    at=/sys/fs/cgroup/$group limit=memory.high used=memory.current
else
    at=/sys/fs/cgroup/memory/$group limit=memory.limit_in_bytes used=memory.usage_in_bytes
fi

cleanup() {
    for pid in $player $server; do kill "$pid" 2>/dev/null && wait "$pid" || true; done
    rm -rf "$dir"
    rmdir "$at" 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 1' INT TERM

show() {
    pinned=$(awk '/^VmPin/ { print int($2 / 1024) }' "/proc/$server/status")
    buffers=$(curl -s "$url/status" | sed 's/.*"buffers_limit":\([0-9]*\).*/\1/')
    echo "$1: group $(($(cat "$at/$used") >> 20)) MiB, pinned $pinned MiB, buffers $((buffers >> 20)) MiB"
}

ffmpeg -v error -f lavfi -i testsrc2=s=640x360:r=25 -t 160 -c:v libx264 -preset ultrafast -b:v 5M \
    -minrate 5M -maxrate 5M -bufsize 5M -x264-params nal-hrd=cbr "$dir/film.mp4"
truncate -s 2G "$dir/store"
"$tenuto" format "$dir/store" >"$dir/log"
for number in $(seq 15); do
    "$tenuto" ingest "$dir/store" "$dir/film.mp4" --title "film $number" >>"$dir/log"
done

mkdir "$at"
echo 400M >"$at/$limit"
# shellcheck disable=SC2016 # the shell in the group expands them
sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$at" \
    "$tenuto" serve "$dir/store" --listen "${url#http://}" --memory 200MiB >>"$dir/log" 2>&1 &
server=$!
until curl -sf "$url/healthz" >"$dir/health"; do sleep 0.2; done
"$tenuto" play "$url" --viewers "$viewers" --arrivals every:50ms --duration 70s >"$dir/play" &
player=$!
sleep 12
show "limit 400 MiB"
for mib in 260 200 140; do
    # Version 1 refuses a limit below what is in use.
    tries=0
    until echo "${mib}M" 2>/dev/null >"$at/$limit"; do
        tries=$((tries + 1))
        [ $tries -lt 60 ] || break
        sleep 1
    done
    sleep 5
    show "limit $mib MiB, taken by the kernel after $tries s"
done
wait "$player"
player=
cat "$dir/play"
