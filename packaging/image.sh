#!/bin/sh
# Makes a container image from dist/tenuto-VERSION-ARCH-static and Debian's FFmpeg, and tries it.
#
#   dist/tenuto-VERSION-ARCH-oci.tar    an OCI image layout: `podman load`, `skopeo copy oci-archive:`
#
# No daemon and no root are needed. The image has one layer: this machine's release of Debian, as
# small as apt allows, with FFmpeg and certificates.
set -eu
cd "$(dirname "$0")/.."
. packaging/version.sh
machine=$(uname -m)
program=dist/tenuto-$version-$machine-static
made=dist/tenuto-$version-$machine-oci.tar
arch=$(dpkg --print-architecture)
layout=$work/layout
mkdir -p "$layout/blobs/sha256"

add() { # add FILE: takes it as a blob, and prints `sha256:DIGEST` and its size
    digest=$(sha256sum "$1" | cut -d' ' -f1)
    size=$(stat -c %s "$1")
    mv "$1" "$layout/blobs/sha256/$digest"
}

echo "making the layer: $(suite) with FFmpeg"
cp "$program" "$work/tenuto"
mmdebstrap --quiet --variant=essential --include=ffmpeg,ca-certificates \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook="copy-in $work/tenuto /usr/bin" \
    --customize-hook='chmod 755 "$1/usr/bin/tenuto"' \
    --customize-hook='echo tenuto:x:900:900:Tenuto:/var/lib/tenuto:/usr/sbin/nologin \
        >>"$1/etc/passwd"; echo tenuto:x:900: >>"$1/etc/group"' \
    --customize-hook='install -d -m 750 -o 900 -g 900 "$1/var/lib/tenuto"' \
    --customize-hook='rm -rf "$1"/var/cache/ldconfig "$1"/var/log/*.log "$1"/var/log/apt' \
    "$(suite)" "$work/layer.tar"
unpacked=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
gzip -6n "$work/layer.tar"
add "$work/layer.tar.gz"
layer=$digest layer_size=$size

created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
# The user by number: runAsNonRoot of Kubernetes refuses names.
cat >"$work/config" <<CONFIG
{"created": "$created", "architecture": "$arch", "os": "linux",
 "config": {"User": "900:900", "WorkingDir": "/var/lib/tenuto",
  "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
          "XDG_RUNTIME_DIR=/var/lib/tenuto"],
  "Entrypoint": ["/usr/bin/tenuto"], "Cmd": ["--help"],
  "ExposedPorts": {"8080/tcp": {}}, "Volumes": {"/var/lib/tenuto": {}},
  "StopSignal": "SIGTERM",
  "Labels": {"org.opencontainers.image.title": "tenuto",
             "org.opencontainers.image.version": "$version",
             "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
             "org.opencontainers.image.source": "https://github.com/tenuto-media/tenuto"}},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$unpacked"]}}
CONFIG
add "$work/config"
cat >"$work/manifest" <<MANIFEST
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
 "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": "sha256:$digest", "size": $size},
 "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
             "digest": "sha256:$layer", "size": $layer_size}]}
MANIFEST
add "$work/manifest"
cat >"$layout/index.json" <<INDEX
{"schemaVersion": 2, "manifests": [
 {"mediaType": "application/vnd.oci.image.manifest.v1+json",
  "digest": "sha256:$digest", "size": $size,
  "annotations": {"org.opencontainers.image.ref.name": "tenuto:$version"}}]}
INDEX
echo '{"imageLayoutVersion": "1.0.0"}' >"$layout/oci-layout"
tar --create --file "$made" --directory "$layout" --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@$SOURCE_DATE_EPOCH" oci-layout index.json blobs

echo "trying $made: unpacked by umoci, as root of the program"
mkdir "$work/image"
tar --extract --file "$made" --directory "$work/image"
rootless=''
[ "$(id -u)" = 0 ] || rootless=--rootless
umoci --log error unpack $rootless --image "$work/image:tenuto:$version" "$work/bundle"
cp packaging/try.sh "$work/bundle/rootfs/opt/"
if [ "$(id -u)" = 0 ]; then
    chroot "$work/bundle/rootfs" setpriv --reuid=tenuto --regid=tenuto --clear-groups \
        env HOME=/var/lib/tenuto XDG_RUNTIME_DIR=/var/lib/tenuto sh /opt/try.sh image
else
    unshare --map-root-user chroot "$work/bundle/rootfs" sh /opt/try.sh image
fi
ls -l "$made"
