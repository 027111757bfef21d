#!/bin/sh
# Runs `meter capacity` on three kinds of storage: a directory, the same directory through FUSE
# (bindfs), and a file system on a loop device that the kernel slows down. Needs root, bindfs,
# e2fsprogs and python3.
#
#   benches/capacity-targets.sh TENUTO DIR [OUT] [PROFILE] [SIZE]
#
# DIR is a directory on the storage to be measured. Files are made in it and removed afterwards;
# SIZE (8GiB) and 1 GiB more must be free. OUT is the directory for reports (./capacity). PROFILE is
# xdcam422 by default. A search takes three to eight minutes on a quiet machine, and 15 at most. The
# loop device is limited to 200 MB/s (cgroup v1 blkio or v2 io), so the expected result is 32
# streams of 6.25 MB/s.
#
# Prints for each storage: the number of streams, whether it was confirmed, the certainty, what
# broke first, the number of runs and of invalid runs, and the duration.
set -eu

tenuto=$(realpath "$1")
dir=$(mktemp -d "$(realpath "$2")/tenuto-capacity-XXXXXX")
out=${3:-capacity}
profile=${4:-xdcam422}
size=${5:-8GiB}
limit=200000000
group=tenuto-capacity-$$
loop=

cleanup() {
    umount "$dir/fuse" 2>/dev/null || true
    umount "$dir/slow" 2>/dev/null || true
    [ -z "$loop" ] || losetup -d "$loop" 2>/dev/null || true
    rmdir "/sys/fs/cgroup/blkio/$group" "/sys/fs/cgroup/$group" 2>/dev/null || true
    rm -f "$dir/image"
    rmdir "$dir/plain" "$dir/fuse" "$dir/slow" "$dir" 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 1' INT TERM
mkdir -p "$out" "$dir/plain" "$dir/fuse" "$dir/slow"

# Runs a command in the cgroup, so that all its reads are slowed down.
slowed() {
    numbers=$(lsblk -ndo MAJ:MIN "$loop" | tr -d ' ')
    if [ -d /sys/fs/cgroup/blkio ]; then
        mkdir "/sys/fs/cgroup/blkio/$group"
        echo "$numbers $limit" >"/sys/fs/cgroup/blkio/$group/blkio.throttle.read_bps_device"
        procs="/sys/fs/cgroup/blkio/$group/cgroup.procs"
    else
        echo +io >/sys/fs/cgroup/cgroup.subtree_control
        mkdir "/sys/fs/cgroup/$group"
        echo "$numbers rbps=$limit" >"/sys/fs/cgroup/$group/io.max"
        procs="/sys/fs/cgroup/$group/cgroup.procs"
    fi
    sh -c 'echo $$ >"$0"; exec "$@"' "$procs" "$@"
}

search() {
    name=$1
    target=$2
    shift 2
    begun=$(date +%s)
    "$@" timeout 900 "$tenuto" meter capacity --profile "$profile" --target "$target" --size "$size" \
        --out "$out/$name" --json >"$out/$name.json" 2>"$out/$name.notes" || true
    python3 - "$name" "$out/$name.json" "$out/$name.notes" $(($(date +%s) - begun)) <<'EOF'
import json, sys
name, said, notes, took = sys.argv[1:]
try:
    found = json.load(open(said))
except ValueError:
    sys.exit(f"{name}: no answer in {took} s: {open(notes).read().strip()}")
sure = found["late_share_at_most"]
held = ("at least " if found["at_limit"] or found["by_meter"] else "") + str(found["streams"])
print(f"{name}: {held} streams, {'confirmed' if found['confirmed'] else 'not confirmed'}, "
      f"late at most {'-' if sure is None else f'{sure:.2e}'} of frames; "
      f"{len(found['runs'])} runs, {found['invalid']} invalid, {took} s")
print(f"    {(found['broke_first'] or {}).get('sentence')}")
print(f"    {open(notes).read().strip().replace(chr(10), '; ')}")
EOF
}

search plain "$dir/plain"

bindfs "$dir/plain" "$dir/fuse"
search fuse "$dir/fuse"
umount "$dir/fuse"

# The image is allocated completely, so that reading it reads the storage.
fallocate -l "$(numfmt --from=iec-i --suffix=B "$size" | tr -d B)" "$dir/image"
truncate -s +1G "$dir/image"
loop=$(losetup -f --show --direct-io=on "$dir/image")
mkfs.ext4 -q "$loop"
mount "$loop" "$dir/slow"
search slow "$dir/slow" slowed
