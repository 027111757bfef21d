#!/bin/sh
# Installs a built program with its manual pages, completions, systemd unit, alerts and board, or
# removes them.
#
#   scripts/install.sh PROGRAM PREFIX [DESTDIR]
#   scripts/install.sh --remove PREFIX [DESTDIR]
#
# It builds nothing, so that `sudo make install` needs neither Rust nor the network, and leaves no
# files of root in target/. DESTDIR is the root of a package that is being made.
set -eu
program=$1
prefix=$2
root=${3:-}$2
here=$(dirname "$0")/..

if [ "$program" = --remove ]; then
    rm -f "$root/bin/tenuto" \
        "$root/share/man/man1/tenuto.1" "$root"/share/man/man1/tenuto-*.1 \
        "$root/share/bash-completion/completions/tenuto" \
        "$root/share/zsh/site-functions/_tenuto" \
        "$root/share/fish/vendor_completions.d/tenuto.fish" \
        "$root/lib/systemd/system/tenuto.service" \
        "$root/lib/systemd/system/tenuto-director.service" \
        "$root/lib/sysusers.d/tenuto.conf" \
        "$root/share/tenuto/alerts.yml" "$root/share/tenuto/grafana.json" \
        "$root/share/tenuto/grafana-cluster.json"
    [ ! -d "$root/share/tenuto" ] || rmdir --ignore-fail-on-non-empty "$root/share/tenuto"
    exit 0
fi
if [ ! -x "$program" ]; then
    echo "error: $program is not built" >&2
    echo "hint: run \`make build\` first, as the user who builds; then \`make install\`" >&2
    exit 1
fi
umask 022
for directory in bin share/man/man1 share/bash-completion/completions share/zsh/site-functions \
    share/fish/vendor_completions.d share/tenuto lib/systemd/system lib/sysusers.d; do
    mkdir -p "$root/$directory"
done
install -m 755 "$program" "$root/bin/tenuto"
rm -f "$root"/share/man/man1/tenuto-*.1
"$program" man --out "$root/share/man/man1"
"$program" completions bash >"$root/share/bash-completion/completions/tenuto"
"$program" completions zsh >"$root/share/zsh/site-functions/_tenuto"
"$program" completions fish >"$root/share/fish/vendor_completions.d/tenuto.fish"
for unit in tenuto.service tenuto-director.service; do
    sed "s|^ExecStart=/usr/local/bin/|ExecStart=$prefix/bin/|" "$here/packaging/$unit" \
        >"$root/lib/systemd/system/$unit"
done
install -m 644 "$here/packaging/sysusers.conf" "$root/lib/sysusers.d/tenuto.conf"
install -m 644 "$here/packaging/prometheus/alerts.yml" "$root/share/tenuto/alerts.yml"
install -m 644 "$here/packaging/grafana/tenuto.json" "$root/share/tenuto/grafana.json"
install -m 644 "$here/packaging/grafana/tenuto-cluster.json" "$root/share/tenuto/grafana-cluster.json"
