#!/bin/sh
# Runs inside a fresh root and tries what was installed there:  try.sh deb|static|image|removed
#
# Ends with an error, and the line that failed, at the first thing that does not work.
set -eu
kind=$1
step() { echo "  $*"; "$@" || { echo "error: failed: $*" >&2; exit 1; }; }

if [ "$kind" = removed ]; then
    for left in /usr/bin/tenuto /usr/share/man/man1/tenuto.1.gz \
        /usr/lib/systemd/system/tenuto.service \
        /usr/lib/systemd/system/tenuto-director.service; do
        step test ! -e "$left"
    done
    echo "removed without remains"
    exit 0
fi

cd "$(mktemp -d)"
step tenuto --version
step ffmpeg -nostdin -v error -f lavfi -i testsrc2=s=320x180:r=25:d=4 \
    -f lavfi -i sine=440:d=4 -c:v libx264 -preset ultrafast -g 25 -c:a aac film.mp4
step tenuto format film.store --size 64MiB
step tenuto ingest film.store film.mp4
step tenuto ls film.store --long
step tenuto check film.store --scrub
step tenuto export film.store film out.mp4
step ffprobe -v error out.mp4
tenuto serve film.store --listen 127.0.0.1:18080 >served 2>&1 &
server=$!
for _ in $(seq 50); do
    grep -q console served && break
    sleep 0.2
done
grep -q console served || { cat served >&2; exit 1; }
step tenuto play http://127.0.0.1:18080/t/film/master.m3u8 --duration 2s
kill -TERM $server
step wait $server

if [ "$kind" = deb ]; then
    step getent passwd tenuto
    step systemd-analyze verify --man=no /usr/lib/systemd/system/tenuto.service \
        /usr/lib/systemd/system/tenuto-director.service
    pages=$(dpkg -L tenuto | grep -c '/man1/tenuto-.*\.1\.gz')
    echo "  $pages manual pages of commands"
    [ "$pages" -gt 30 ]
    for file in /usr/share/bash-completion/completions/tenuto \
        /usr/share/zsh/vendor-completions/_tenuto \
        /usr/share/fish/vendor_completions.d/tenuto.fish \
        /usr/share/tenuto/alerts.yml /usr/share/tenuto/grafana.json \
        /usr/share/tenuto/grafana-cluster.json; do
        step test -s "$file"
    done
fi
echo "works"
