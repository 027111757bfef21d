#!/bin/sh
# Compares the meter with fio (Debian: fio) and, if installed, with elbencho: direct random reads of
# 4 KiB of one file or device, one and 32 at a time, in turns. Produces figures of
# docs/reference/figures.md.
#
#   benches/peers.sh TENUTO FILE [TURNS [SECONDS [DEPTHS]]]    FILE: filled, only read; 25 turns of 2 s
#                                                              DEPTHS: '1 32'
#
# Prints for each program the median of its reads per second, the processor time of a read (of the
# whole program, its start included), and the ratio of the meter's figures to it: the median of the
# ratios within a turn, with its 95 % interval (order statistics, without assumptions on the noise).
# Every other turn has the reverse order, because a shared disk drifts. fio uses io_uring with
# registered buffers and files, as the meter does; and pread (one at a time) or libaio. The meter's
# run is late with every frame and therefore invalid, on purpose.
set -eu

tenuto=$(realpath "$1")
file=$(realpath "$2")
turns=${3:-25}
seconds=${4:-2}
depths=${5:-1 32}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# Frames are due sooner than any storage responds, so that the number of reads in flight equals the
# buffer in frames; not far sooner, because each due frame is recorded.
cat >"$work/reads.toml" <<'TOML'
name = "reads"
title = "Reads of 4 KiB as fast as they go"
bytes = 4096
fps = "200000"
random_percent = 100
pattern = "sequential"
definition = { kind = "table" }
source = "benches/peers.sh"
status = "house"
TOML

ours() { # $1 at a time
    "$tenuto" meter run --profile "$work/reads.toml" --target "$file" --streams 1 --buffer-frames "$1" \
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
    # The column is found by its name; the last line is this run.
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^IOPS.*last/) column = i }
        END { print $column }' "$work/elbencho.csv"
    rm -f "$work/elbencho.csv"
}

run() { # who, at a time
    case $1 in
    tenuto) ours "$2" ;;
    fio-uring) by_fio io_uring "$2" --fixedbufs --registerfiles ;;
    fio-psync) by_fio psync "$2" ;;
    fio-libaio) by_fio libaio "$2" ;;
    elbencho) by_elbencho "$2" ;;
    esac
}

# Writes a line for each turn: reads per second, and microseconds of processor time per read.
measure() { # who, at a time
    (
        run "$1" "$2" >"$work/rate"
        times >"$work/times"
    )
    awk -v rate="$(cat "$work/rate")" -v seconds="$seconds" -F'[ms ]+' '
        NR == 2 { spent = $1 * 60 + $2 + $3 * 60 + $4 }
        END { print rate, spent * 1e6 / (rate * seconds) }' "$work/times" >>"$work/$1.$2"
}

column() { cut -d' ' -f"$2" "$work/$1"; } # file, which
median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

peers=elbencho
command -v elbencho >/dev/null 2>&1 || {
    peers=
    echo "without elbencho, which is not installed"
}

for depth in $depths; do
    plain=fio-psync
    [ "$depth" = 1 ] || plain=fio-libaio
    there="tenuto fio-uring $plain${peers:+ $peers}"
    back=
    for one in $there; do back="$one $back"; done
    turn=0
    while [ "$turn" -lt "$turns" ]; do
        order=$there
        [ $((turn % 2)) = 0 ] || order=$back
        for one in $order; do measure "$one" "$depth"; done
        turn=$((turn + 1))
    done
    echo "$depth at a time: reads per second, processor time of a read, ratio of the meter (95 % interval)"
    for one in $there; do
        rate=$(column "$one.$depth" 1 | median)
        cost=$(column "$one.$depth" 2 | median)
        paste -d' ' "$work/tenuto.$depth" "$work/$one.$depth" | awk '{ print $1 / $3 }' | sort -n |
            awk -v who="$one" -v rate="$rate" -v cost="$cost" '
                { ratio[NR] = $1 }
                END {
                    first = int(NR / 2 - 0.98 * sqrt(NR))
                    if (first < 1) first = 1
                    printf "  %-10s %8d %6.1f us   %.3f (%.3f to %.3f)\n", who, rate, cost,
                        ratio[int((NR + 1) / 2)], ratio[first], ratio[NR + 1 - first]
                }'
    done
done
