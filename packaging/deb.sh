#!/bin/sh
# Makes a Debian package of a built program, and tries it:  packaging/deb.sh PROGRAM
#
#   dist/tenuto_VERSION_ARCH.deb          program, manual pages, completions, systemd unit, user
#   dist/tenuto-dbgsym_VERSION_ARCH.deb   its debug symbols
#
# The same program and sources give the same bytes. The package is for this release of the
# distribution and newer ones, because the program uses the C library of the machine that built it.
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")/.."
. packaging/version.sh
arch=$(dpkg --print-architecture)

control() { # control NAME DEPENDS SECTION DESCRIPTION...
    cat <<CONTROL
Package: $1
Version: $version
Architecture: $arch
Maintainer: Tenuto developers <developers@tenuto.invalid>
Section: $3
Priority: optional
Depends: $2
Installed-Size: $(du --apparent-size -sk "$work/$1" | cut -f1)
Homepage: https://github.com/tenuto-media/tenuto
Description: $4
CONTROL
}

pack() { # pack NAME LEVEL: checksums, and the package, compressed as much as LEVEL (0 to 9) says
    (cd "$work/$1" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | LC_ALL=C sort |
        xargs md5sum >DEBIAN/md5sums)
    dpkg-deb --root-owner-group -Zxz -z"$2" --build "$work/$1" "dist/$1_${version}_$arch.deb" >/dev/null
}

licence() { # licence NAME
    mkdir -p "$work/$1/usr/share/doc/$1"
    {
        echo "Tenuto is licensed under MIT or Apache-2.0, as you like."
        echo "The Apache licence is in /usr/share/common-licenses/Apache-2.0."
        echo
        cat LICENSE-MIT
    } >"$work/$1/usr/share/doc/$1/copyright"
}

# The lowest C library that has all functions which the program calls.
libc=$(objdump -T "$program" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | cut -d_ -f2)

scripts/install.sh "$program" /usr "$work/tenuto"
licence tenuto
gzip -9n <CHANGELOG.md >"$work/tenuto/usr/share/doc/tenuto/changelog.gz"
gzip -9n "$work"/tenuto/usr/share/man/man1/*
# Debian reads a package's completions for zsh from here.
mv "$work/tenuto/usr/share/zsh/site-functions" "$work/tenuto/usr/share/zsh/vendor-completions"
mkdir "$work/tenuto/DEBIAN"
cp packaging/deb/* "$work/tenuto/DEBIAN/"
chmod 755 "$work"/tenuto/DEBIAN/*
# procps: the unit reloads with /bin/kill, which a minimal system does not have.
control tenuto "libc6 (>= $libc), libgcc-s1, ffmpeg (>= 7:4.4), procps, \
systemd | systemd-standalone-sysusers | systemd-sysusers" video \
    "media storage that holds its rate
 Stores media on a raw disk or in one large file, serves it over HTTP (HLS,
 DASH and MP4), and admits only as many viewers as the disk is guaranteed to hold.
 Includes a meter for any storage, and a planner." >"$work/tenuto/DEBIAN/control"
chmod 644 "$work/tenuto/DEBIAN/control"
pack tenuto 6

id=$(objdump -s -j .note.gnu.build-id "$program" | awk '/^ /{print $2 $3 $4 $5}' | tr -d '\n' |
    cut -c33-72)
symbols=usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)
mkdir -p "$work/tenuto-dbgsym/$symbols" "$work/tenuto-dbgsym/DEBIAN"
install -m 644 "$program.debug" "$work/tenuto-dbgsym/$symbols/$(echo "$id" | cut -c3-).debug"
licence tenuto-dbgsym
control tenuto-dbgsym "tenuto (= $version)" debug "debug symbols of tenuto" \
    >"$work/tenuto-dbgsym/DEBIAN/control"
pack tenuto-dbgsym 1

echo "trying dist/tenuto_${version}_$arch.deb in a fresh $(suite)"
deb=dist/tenuto_${version}_$arch.deb
mmdebstrap --quiet --variant=apt --format=null \
    --customize-hook="copy-in $deb packaging/try.sh /opt" \
    --customize-hook="chroot \"\$1\" apt-get install --yes --quiet=2 --no-install-recommends \
        /opt/$(basename "$deb") >/dev/null" \
    --customize-hook='chroot "$1" sh /opt/try.sh deb' \
    --customize-hook='chroot "$1" apt-get purge --yes --quiet=2 tenuto >/dev/null' \
    --customize-hook='chroot "$1" sh /opt/try.sh removed' \
    "$(suite)" /dev/null
ls -l dist/tenuto*_"${version}_$arch".deb
