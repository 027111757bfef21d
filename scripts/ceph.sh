#!/usr/bin/env bash
# Runs a command beside an object gateway of Ceph: one monitor, one manager, three OSDs on sparse
# files and one RGW on this machine, which are made for it and ended after it.
#
#   scripts/ceph.sh COMMAND...
#
# Its environment has the gateway's address and keys (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID,
# AWS_SECRET_ACCESS_KEY), and TENUTO_CONFORMANCE=s3://films/house, a bucket that exists. Needs root,
# 1 GiB of memory, 1 GiB of disk and the packages ceph-mon, ceph-mgr, ceph-osd, ceph-common and
# radosgw. The check of what Tenuto needs of a bucket:
#
#   scripts/ceph.sh scripts/rust.sh cargo test -p bucket --test conformance an_endpoint -- --nocapture
set -euo pipefail
if [ $# = 0 ]; then
  sed -n '2,/^set/{/^#/s/^# \?//p}' "$0"
  exit 2
fi
for program in ceph-mon ceph-mgr ceph-osd ceph radosgw radosgw-admin curl; do
  command -v "$program" >/dev/null || {
    echo "error: '$program' is missing" >&2
    echo "hint: apt-get install --no-install-recommends ceph-mon ceph-mgr ceph-osd ceph-common radosgw" >&2
    exit 1
  }
done

folder=$(mktemp -d)
running=()
end() {
  # The monitor last: the others wait for it.
  local at
  for ((at = ${#running[@]} - 1; at >= 0; at--)); do
    kill -9 "${running[at]}" 2>/dev/null || true
    wait "${running[at]}" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start() { # NAME COMMAND...
  "${@:2}" >"$folder/$1.log" 2>&1 </dev/null &
  running+=($!)
}
until_it_works() { # SECONDS WHAT COMMAND...
  local end=$((SECONDS + $1))
  until "${@:3}" >/dev/null 2>&1; do
    if ((SECONDS > end)); then
      echo "error: not within $1 s: $2" >&2
      tail -n 5 "$folder"/*.log >&2
      exit 1
    fi
    sleep 0.3
  done
}

fsid=$(cat /proc/sys/kernel/random/uuid)
monitors='[v2:127.0.0.1:23300,v1:127.0.0.1:26789]'
cat >"$folder/ceph.conf" <<END
[global]
fsid = $fsid
mon host = $monitors
keyring = $folder/\$name.keyring
run dir = $folder
admin socket = $folder/\$name.asok
log file = $folder/\$name.ceph
public addr = 127.0.0.1
cluster addr = 127.0.0.1
# All on one machine.
osd crush chooseleaf type = 0
osd pool default size = 2
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
mon max pg per osd = 1000
osd memory target = 939524096
bluestore block size = 6442450944
[mon]
mon data = $folder/mon
keyring = $folder/mon.keyring
# On the addresses of the monitors' map.
public addr =
[mgr]
mgr data = $folder/mgr
[osd]
osd data = $folder/osd\$id
END
export CEPH_CONF=$folder/ceph.conf

all=(--cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *')
ceph-authtool -C "$folder/mon.keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null
ceph-authtool -C "$folder/client.admin.keyring" --gen-key -n client.admin "${all[@]}" >/dev/null
ceph-authtool "$folder/mon.keyring" --import-keyring "$folder/client.admin.keyring" >/dev/null
monmaptool --create --addv a "$monitors" --fsid "$fsid" "$folder/monmap" >/dev/null
mkdir "$folder/mon" "$folder/mgr"
ceph-mon --mkfs -i a --monmap "$folder/monmap" --keyring "$folder/mon.keyring"
start mon ceph-mon -f -i a
until_it_works 60 'the monitor answers' ceph --connect-timeout 3 mon stat

key() { # NAME CAPABILITY...
  ceph auth get-or-create "$1" "${@:2}" >"$folder/$1.keyring"
}
key mgr.x mon 'allow profile mgr' osd 'allow *' mds 'allow *'
start mgr ceph-mgr -f -i x
for number in 0 1 2; do
  mkdir "$folder/osd$number"
  id=$(cat /proc/sys/kernel/random/uuid)
  ceph osd new "$id" >/dev/null
  key "osd.$number" mon 'allow profile osd' mgr 'allow profile osd' osd 'allow *'
  ceph-osd --mkfs --no-mon-config -i "$number" --osd-uuid "$id" >"$folder/osd$number.log" 2>&1
  start "osd$number" ceph-osd -f -i "$number"
done
until_it_works 60 'three OSDs are up' sh -c 'ceph osd stat | grep -q "3 up"'

key client.rgw mon 'allow rw' osd 'allow rwx'
start rgw radosgw -f -n client.rgw --rgw-frontends 'beast endpoint=127.0.0.1:27480'
export AWS_ENDPOINT_URL=http://127.0.0.1:27480
export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=a-secret-key
until_it_works 120 'the gateway answers' curl -sf "$AWS_ENDPOINT_URL"
until_it_works 60 'there is a user' radosgw-admin user create --uid=films --display-name=films \
  --access-key="$AWS_ACCESS_KEY_ID" --secret-key="$AWS_SECRET_ACCESS_KEY"
# Its body is empty, and so is the hash of that: older curl does not add it.
until_it_works 60 'there is a bucket' curl -sf --aws-sigv4 aws:amz:us-east-1:s3 \
  -H "x-amz-content-sha256: $(sha256sum </dev/null | cut -d' ' -f1)" --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -X PUT "$AWS_ENDPOINT_URL/films"
echo "$(ceph --version | cut -d' ' -f1-3) at $AWS_ENDPOINT_URL, after $SECONDS s"
export TENUTO_CONFORMANCE=s3://films/house
"$@"
