#!/bin/sh
# Makes the pictures of docs/guide/measure-storage.md from reports of the meter.
#
#   benches/pictures.sh TENUTO [TARGET [SIZE]]
#
# Writes to docs/images. Without TARGET it makes the pictures of simulated disks, which are the same
# on every machine (one minute):
#
#   meter-report-top.png         the top of a search's report, as shown by chromium
#   meter-search-rates.svg       delivered rate by number of streams
#   meter-search-responses.svg   response time by number of streams
#   meter-ramp-rate.svg          rate of a client by number of clients
#   meter-ramp-total.svg         total rate by number of clients
#
# With TARGET, a directory or a device, it makes the pictures of the run that confirmed a search
# there (five minutes at most; a directory needs free space of SIZE, 3GiB):
#
#   meter-report-rounds.svg      longest response of each round
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

# Extracts the plot with this title from a report.
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
