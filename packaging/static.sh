#!/bin/sh
# Takes a statically linked program to dist/, and tries it:  packaging/static.sh PROGRAM
#
#   dist/tenuto-VERSION-ARCH-static
#
# It is tried with an empty directory as its root: no library, no shell, no /proc. A server makes
# session tokens of random bytes, so /dev/urandom is there.
set -eu
program=$1
cd "$(dirname "$0")/.."
. packaging/version.sh
made=dist/tenuto-$version-$(uname -m)-static
install -m 755 "$program" "$made"
if [ -n "$(ldd "$made" 2>/dev/null | grep '=>')" ]; then
    echo "error: $made needs libraries: $(ldd "$made")" >&2
    exit 1
fi

echo "trying $made with an empty directory (and /dev/urandom) as its root"
root=$work/root
mkdir "$root"
cp "$made" "$root/tenuto"
cp CHANGELOG.md "$root/notes.txt"
mkdir "$root/dev"
touch "$root/dev/urandom"
cat >"$work/inside" <<INSIDE
cd "$root" && mount --bind /dev/urandom dev/urandom && exec chroot . "\$@"
INSIDE
user=''
[ "$(id -u)" = 0 ] || user=--map-root-user
inside="unshare $user --mount sh $work/inside"
step() { echo "  $*"; "$@" || { echo "error: failed: $*" >&2; exit 1; }; }
step $inside /tenuto --version
step $inside /tenuto format film.store --size 64MiB
step $inside /tenuto ingest film.store notes.txt --as file
step $inside /tenuto ls film.store --long
$inside /tenuto serve film.store --listen 127.0.0.1:0 >"$work/served" 2>&1 &
server=$!
for _ in $(seq 50); do
    grep -q console "$work/served" && break
    sleep 0.2
done
grep -q console "$work/served" || { cat "$work/served" >&2; exit 1; }
url=$(grep -o 'http://[0-9.:]*' "$work/served" | head -n 1)
step curl --fail --silent --show-error "$url/titles"
echo
kill -TERM $server
step wait $server
step $inside /tenuto export film.store notes out.txt
step cmp "$root/out.txt" CHANGELOG.md
ls -l "$made"
