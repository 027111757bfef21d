#!/bin/sh
# Ours beside fio (Debian: fio) and, where it is installed, elbencho: direct random reads of 4 KiB of
# one file or device, one and 32 at a time, in turns. Makes figures of docs/reference/figures.md.
#
#   benches/peers.sh TENUTO FILE [TURNS [SECONDS]]       FILE: filled, only read; 9 turns of 5 s
#
# Prints the median and the best reads a second of each, and the ratio of our median to the better
# of theirs. fio goes by io_uring with registered buffers and files, as we do; and by pread (one at
# a time) or libaio. That our run is late with every frame, and so not valid, is meant.
set -eu

tenuto=$(realpath "$1")
file=$(realpath "$2")
turns=${3:-9}
seconds=${4:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# Due far sooner than any storage answers, so that as many are under way as the buffer has frames.
cat >"$work/reads.toml" <<'TOML'
name = "reads"
title = "Reads of 4 KiB as fast as they go"
bytes = 4096
fps = "2000000"
random_percent = 100
pattern = "sequential"
definition = { kind = "table" }
source = "benches/peers.sh"
status = "house"
TOML

ours() { # $1 at a time
    "$tenuto" meter run --profile "$work/reads.toml" --target "$file" --streams 1 --buffer "$1" \
        --method io_uring --duration "${seconds}s" --json 2>/dev/null >"$work/ours.json" || true
    awk -F'[:,]' '/^  "bytes_read"/ { bytes = $2 } /^  "took"/ { took = $2 }
        END { if (!took) exit 1; printf "%d\n", bytes / 4096 / took }' "$work/ours.json" || {
        echo "error: tenuto measured nothing; run \`tenuto meter run --target $file\` to see why" >&2
        exit 1
    }
}

by_fio() { # engine, at a time, other options
    engine=$1 depth=$2
    shift 2
    fio --name=reads --filename="$file" --readonly --rw=randread --bs=4k --direct=1 --thread \
        --ioengine="$engine" --iodepth="$depth" --norandommap --randrepeat=0 --time_based \
        --runtime="$seconds" --output-format=terse --terse-version=3 "$@" |
        awk -F';' 'NF > 10 { print $8 }'
}

by_elbencho() { # $1 at a time
    size=$(stat -Lc %s "$file")
    [ "$size" -gt 0 ] || size=$(blockdev --getsize64 "$file")
    elbencho -r --rand -b 4k -s "$size" -t 1 --iodepth "$1" --direct --infloop \
        --timelimit "$seconds" --lat --nolive --csvfile "$work/elbencho.csv" "$file" >/dev/null
    # By the name of the column; the last line is this run.
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^IOPS.*last/) column = i }
        END { print $column }' "$work/elbencho.csv"
    rm -f "$work/elbencho.csv"
}

others='uring plain'
if command -v elbencho >/dev/null 2>&1; then
    others="$others elbencho"
else
    echo "without elbencho, which is not installed"
fi

for depth in 1 32; do
    plain=psync
    [ "$depth" = 1 ] || plain=libaio
    turn=0
    while [ "$turn" -lt "$turns" ]; do
        ours "$depth" >>"$work/ours.$depth"
        by_fio io_uring "$depth" --fixedbufs --registerfiles >>"$work/uring.$depth"
        by_fio "$plain" "$depth" >>"$work/plain.$depth"
        case $others in *elbencho*) by_elbencho "$depth" >>"$work/elbencho.$depth" ;; esac
        turn=$((turn + 1))
    done
    median() { sort -n "$work/$1.$depth" | sed -n "$(((turns + 1) / 2))p"; }
    best() { sort -n "$work/$1.$depth" | tail -n 1; }
    better=0
    for one in $others; do
        [ "$(median "$one")" -le "$better" ] || better=$(median "$one")
    done
    echo "$depth at a time, reads a second: median (best)"
    echo "  tenuto           $(median ours) ($(best ours))"
    echo "  fio io_uring     $(median uring) ($(best uring))"
    echo "  fio $plain       $(median plain) ($(best plain))"
    case $others in *elbencho*) echo "  elbencho         $(median elbencho) ($(best elbencho))" ;; esac
    awk -v ours="$(median ours)" -v theirs="$better" \
        'BEGIN { printf "  ratio            %.3f\n", ours / theirs }'
done
