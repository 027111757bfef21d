#!/bin/sh
# Compares what `meter capacity` says of simulated disks with runs of a day in virtual time.
# Produces figures of docs/reference/figures.md.
#
#   benches/day.sh TENUTO [PROFILES [MODELS [DURATION]]]    names with spaces between; all models; 24h
#
# Prints for each profile and model: the number of streams that the search found, and in how long a
# run it was confirmed; what a run of a day says of that number, and of one more (1 % more from 200
# on). The last line has the counts. Ends with 1 if a day contradicts a number.
set -eu

tenuto=$(realpath "$1")
profiles=${2:-mpeg-1.5 abr-hd abr-uhd xdcam422 prores-hq-uhd-25 dpx10-2k ingest-xavc300-25 audio-16ch}
models=${3:-$("$tenuto" disk models | awk 'NR > 1 && NF { print $1 }')}
duration=${4:-24h}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

day() { # profile, model, streams; prints what the exit code means
    code=0
    "$tenuto" meter run --profile "$1" --target "sim:$2" --streams "$3" --duration "$duration" \
        >/dev/null 2>&1 || code=$?
    case $code in
    0) echo held ;;
    3) echo "not held" ;;
    *) echo "exit code $code" ;;
    esac
}

printf '%-20s %-12s %8s  %-10s %-9s  %s\n' profile model streams 'confirmed' 'a day' 'a day of more'
pairs=0 held=0 more_failed=0
for profile in $profiles; do
    for model in $models; do
        code=0
        "$tenuto" meter capacity --profile "$profile" --target "sim:$model" >"$work/found" \
            2>/dev/null || code=$?
        found=$(awk '$1 == "holds" { print $2; exit }' "$work/found")
        case $code$found in
        0[1-9]*) ;;
        *)
            said=$(awk '$1 == "holds" { $1 = ""; print substr($0, 2); exit }' "$work/found")
            printf '%-20s %-12s left out: %s\n' "$profile" "$model" "${said:-exit code $code}"
            continue
            ;;
        esac
        confirmed=$(awk '$1 == "confirmed" { print $NF }' "$work/found")
        more=$((found + (found < 200 ? 1 : found / 100)))
        one=$(day "$profile" "$model" "$found")
        other=$(day "$profile" "$model" "$more")
        printf '%-20s %-12s %8s  %-10s %-9s  %s: %s\n' "$profile" "$model" "$found" "$confirmed" \
            "$one" "$more" "$other"
        pairs=$((pairs + 1))
        [ "$one" != held ] || held=$((held + 1))
        [ "$other" != "not held" ] || more_failed=$((more_failed + 1))
    done
done
echo "$pairs numbers: a day holds $held of them, and does not hold more in $more_failed"
[ "$held" = "$pairs" ]
