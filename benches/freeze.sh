#!/bin/sh
# Checks the count of late frames: a file system on a loop device is frozen for two seconds while
# streams write to it. Needs root, python3, e2fsprogs, and 1 GiB of memory (/dev/shm).
#
#   benches/freeze.sh TENUTO [STREAMS] [BYTES]     STREAMS: 1, of 25 frames per second
#                                                  BYTES of a frame: 65536
#
# Prints three counts of late frames, which must be within one frame of each other for each stream:
#   reported    by the meter during the run
#   recounted   from the log of operations alone (`tenuto meter report`)
#   by freeze   from the time for which the kernel blocked writes: a frame is late if it was due to be
#               written in this time and at least the client's buffer (8 frames) before its end. The
#               time is measured independently, as the longest of the small writes that a second
#               program made to the file system every millisecond.
# Writes are blocked for longer than the two seconds between the returns of the freezing and the
# thawing call, because freezing first blocks writes, then writes dirty data to the disk, and only
# then returns. The output therefore contains the duration of both calls.
set -eu

tenuto=$(realpath "$1")
streams=${2:-1}
bytes=${3:-65536}
work=$(mktemp -d)
image=/dev/shm/tenuto-freeze-$$.img
loop=

cleanup() {
    umount "$work/films" 2>/dev/null || true
    [ -z "$loop" ] || losetup -d "$loop" 2>/dev/null || true
    rm -rf "$image" "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

truncate -s 1G "$image"
loop=$(losetup -f --show "$image")
mkfs.ext4 -q "$loop"
mkdir "$work/films"
mount "$loop" "$work/films"

cat >"$work/writer.toml" <<EOF
name = "writer"
title = "A camera of small frames"
bytes = $bytes
fps = "25"
read_percent = 0
pattern = "sequential"
definition = { kind = "table" }
source = "benches/freeze.sh"
status = "house"
EOF

"$tenuto" meter run --profile "$work/writer.toml" --target "$work/films" --size 512MiB \
    --streams "$streams" --duration 12s --out "$work/run" --json >"$work/said.json" 2>"$work/notes" &
meter=$!

python3 - "$work/films" "$work/frozen" "$work/run" <<'EOF'
import fcntl, json, mmap, os, sys, threading, time
FREEZE, THAW = 0xC0045877, 0xC0045878
target, out, run = sys.argv[1:]
while not os.path.exists(run + "/operations.parquet"):
    time.sleep(0.05)
time.sleep(4)
there = os.open(target, os.O_RDONLY)
over, longest = threading.Event(), 0.0

def witness():
    global longest
    page = mmap.mmap(-1, 4096)
    file = os.open(target + "/witness", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    while not over.is_set():
        begun = time.monotonic()
        os.pwrite(file, page, 0)
        longest = max(longest, time.monotonic() - begun)
        time.sleep(0.001)
    os.close(file)

writes = threading.Thread(target=witness)
writes.start()
time.sleep(0.2)
times = [time.monotonic()]
fcntl.ioctl(there, FREEZE, 0)
times.append(time.monotonic())
try:
    time.sleep(2)
finally:
    times.append(time.monotonic())
    fcntl.ioctl(there, THAW, 0)
    times.append(time.monotonic())
time.sleep(0.2)
over.set()
writes.join()
json.dump([*times, longest], open(out, "w"))
EOF

wait "$meter" || true
"$tenuto" meter report "$work/run" --json >"$work/recount.json" 2>/dev/null
python3 - "$work" "$streams" <<'EOF'
import json, math, sys
work, streams = sys.argv[1], int(sys.argv[2])
load = lambda name: json.load(open(f"{work}/{name}"))
said, recount = load("said.json"), load("recount.json")
before, frozen, thawing, after, held = load("frozen")
frames = (held - said["allowed"]) * 25
print(f"reported    {said['late']} of {said['frames']} frames, {said['late_by_meter']} of them by the meter")
print(f"recounted   {recount['late']}")
print(f"by freeze   {streams * math.floor(frames)} to {streams * math.ceil(frames)}: writes were held back for {held:.3f} s")
print(f"            freezing took {frozen - before:.3f} s, thawing {after - thawing:.3f} s; between them {thawing - frozen:.3f} s")
print(f"            longest response {said['response']['max']:.3f} s")
EOF
