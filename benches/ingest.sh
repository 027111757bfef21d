#!/bin/bash
# Compares the time of an ingest with FFmpeg's remuxing of the same file:
#
#   benches/ingest.sh FILE [TURNS]
#
# The two take turns, so that a drift of the machine's speed affects both:
#   tenuto   `tenuto ingest` into a store beside FILE; the title is then removed, which is not timed
#   ffmpeg   `ffmpeg -c copy` of FILE to a fragmented MP4 beside it, without a flush
# Prints wall and processor seconds of each and the median of the ratios. The ingest ends when its
# data is flushed to the disk; FFmpeg leaves flushing to the kernel.
set -euo pipefail
file=$1 turns=${2:-7} tenuto=${TENUTO:-target/release/tenuto}
store=$(dirname "$file")/ingest-bench.tenuto out=$(dirname "$file")/ingest-bench.mp4
trap 'rm -f "$store" "$out"' EXIT
bytes=$(stat -Lc %s "$file")
"$tenuto" format "$store" --size $((bytes / 1048576 * 11 / 10 + 128))MiB --destroy >/dev/null
TIMEFORMAT='%R %U %S'
timed() { { time "$@" >/dev/null 2>&1; } 2>&1; }
for turn in $(seq 0 "$turns"); do
    a=$(timed "$tenuto" ingest "$store" "$file" --title bench)
    "$tenuto" rm "$store" bench >/dev/null
    b=$(timed ffmpeg -v error -y -i "$file" -map 0 -c copy \
        -movflags frag_keyframe+empty_moov+default_base_moof "$out")
    # The first turn warms the page cache and is not counted.
    [ "$turn" = 0 ] || echo "$a $b"
done | awk '
    { print "tenuto " $1 " s, " $2 + $3 " cpu   ffmpeg " $4 " s, " $5 + $6 " cpu"
      wall[NR] = $1 / $4; cpu[NR] = ($2 + $3) / ($5 + $6) }
    function median(of, n,   i, j, t) {
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
            if (of[j] < of[i]) { t = of[i]; of[i] = of[j]; of[j] = t }
        return (of[int((n + 1) / 2)] + of[int(n / 2) + 1]) / 2 }
    END { printf "tenuto / ffmpeg, median of %d: wall %.2f, processor %.2f\n",
          NR, median(wall, NR), median(cpu, NR) }'
