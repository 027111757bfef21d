#!/bin/sh
# The pictures of docs/guide/measure-storage.md, made again from reports of the meter.
#
#   benches/pictures.sh TENUTO [TARGET [SIZE]]
#
# Writes to docs/images. Without TARGET those of simulated disks, which are the same on every machine (one
# minute):
#
#   meter-report-top.png         the top of a search's report, as chromium shows it
#   meter-search-rates.svg       what came, by number of streams
#   meter-search-responses.svg   how long frames took, by number of streams
#   meter-ramp-rate.svg          rate of a client, by number of clients
#   meter-ramp-total.svg         of all together
#
# With TARGET, a directory or a device, those of the run that confirmed a search there (five minutes at
# most; in a directory SIZE, 3GiB, must be free):
#
#   meter-report-rounds.svg      round by round
#   meter-report-heat.svg        responses over time
#
# An SVG is a part of report.html, from <svg to </svg>, unchanged.
set -eu

tenuto=$(realpath "$1")
target=${2:+$(realpath "$2")}
size=${3:-3GiB}
out=docs/images
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# The plot of this title in a report.
plot() {
    awk -v title="$2" '
        /<svg/ { sub(/.*<svg/, "<svg"); text = ""; inside = 1 }
        inside { text = text $0 "\n" }
        /<\/svg>/ {
            if (inside && index(text, "\n" title "\n")) {
                sub(/<\/svg>.*/, "</svg>\n", text)
                printf "%s", text
                exit
            }
            inside = 0
        }' "$work/$1/report.html" > "$out/$3"
    [ -s "$out/$3" ] || { echo "$1 has no plot '$2'" >&2; exit 1; }
}

if [ -n "$target" ]; then
    "$tenuto" meter capacity --profile prores-hq-uhd --target "$target" --size "$size" --duration 5s --out "$work/real"
    plot real 'Round by round' meter-report-rounds.svg
    plot real 'Responses over time' meter-report-heat.svg
    exit
fi

"$tenuto" meter capacity --profile xdcam422 --target sim:ssd-sata --out "$work/capacity"
"$tenuto" meter ramp ebu-multi-edit --target sim:ssd-sata --size 64GiB --step 1min --out "$work/ramp"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/chromium" \
    --window-size=1000,900 --screenshot="$out/meter-report-top.png" "file://$work/capacity/report.html"
plot capacity 'What came, by number of streams' meter-search-rates.svg
plot capacity 'How long 99 of 100 frames took at most, by number of streams' meter-search-responses.svg
plot ramp 'Rate of a client, by number of clients' meter-ramp-rate.svg
plot ramp 'Rate of all clients together' meter-ramp-total.svg
