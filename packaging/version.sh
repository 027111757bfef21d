# Read by the other scripts here: what is packaged, and where it goes. The working directory is the
# root of the repository.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Time stamps of all files in packages: that of the last commit, so that the same sources and
# program give the same bytes.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}"
export SOURCE_DATE_EPOCH version
umask 022
mkdir -p dist
work=$(mktemp -d "${TMPDIR:-/tmp}/tenuto-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
# A signal ends the script in order, so that the directory is removed.
trap 'exit 130' INT TERM

suite() { # the Debian release, in which packages are tried, and which is the base of the image
    . /etc/os-release
    echo "$VERSION_CODENAME"
}
