#!/bin/sh
# Measures how long a fleet of agents takes to be ready: agents over ssh on this machine, each in
# its own network namespace. Needs root, iproute2 and openssh-server.
#
#   benches/fleet.sh TENUTO [AGENTS [PROGRAM]]
#
# AGENTS is 40 by default. PROGRAM is the program that is copied to the hosts, for example
# target/agent/tenuto-agent; by default TENUTO. FLEET_SSH has options for `--ssh`, for example '-o
# KexAlgorithms=^curve25519-sha256 -c aes128-gcm@openssh.com'.
#
# Prints `connected_in_ms`: the time from the start of the controller until every host has received
# the program by ssh, started it, authenticated with the token and answered the clock queries. Then
# each agent runs a stream for 2 s. The networks are virtual and all agents share one machine, so
# only the time to be ready is meaningful.
set -eu

tenuto=$(realpath "$1")
agents=${2:-40}
program=$(realpath "${3:-$1}")
work=$(mktemp -d)
bridge=tnt-fleet

cleanup() {
    for pid in "$work"/sshd.*.pid; do
        [ -e "$pid" ] && kill "$(cat "$pid")" 2>/dev/null || true
    done
    i=1
    while [ "$i" -le "$agents" ]; do
        ip netns del "tnt$i" 2>/dev/null || true
        i=$((i + 1))
    done
    ip link del "$bridge" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

mkdir -p /run/sshd "$work/films"
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/user"
cp "$work/user.pub" "$work/authorized"
chmod 700 "$work"

ip link add "$bridge" type bridge
ip addr add 10.98.0.254/24 dev "$bridge"
ip link set "$bridge" up
i=1
hosts=''
while [ "$i" -le "$agents" ]; do
    ip netns add "tnt$i"
    ip link add "tntv$i" type veth peer name eth0 netns "tnt$i"
    ip link set "tntv$i" master "$bridge" up
    ip -n "tnt$i" addr add "10.98.0.$i/24" dev eth0
    ip -n "tnt$i" link set eth0 up
    ip -n "tnt$i" link set lo up
    ip netns exec "tnt$i" "$(command -v sshd)" -f /dev/null -h "$work/host" \
        -o "PidFile=$work/sshd.$i.pid" -o "AuthorizedKeysFile=$work/authorized" \
        -o StrictModes=no -o PermitRootLogin=prohibit-password -o UsePAM=no -o UseDNS=no
    hosts="$hosts${hosts:+,}10.98.0.$i"
    i=$((i + 1))
done

# The controller calls `ssh`. This one uses the key made above and ignores the user's settings.
mkdir "$work/bin"
cat >"$work/bin/ssh" <<SSH
#!/bin/sh
exec $(command -v ssh) -F /dev/null -i $work/user -o StrictHostKeyChecking=no \
    -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o IdentitiesOnly=yes -l root "\$@"
SSH
chmod 755 "$work/bin/ssh"

PATH="$work/bin:$PATH" "$tenuto" meter run --profile dvcpro50 --streams "$agents" --duration 2s \
    --size 8MiB --target "$work/films" --hosts "$hosts" --program "$program" --ssh "ssh ${FLEET_SSH:-}" --json >"$work/summary.json" || true
grep -E '"(connected_in_ms|valid|frames)"' "$work/summary.json" | tail -3
grep -c '"host"' "$work/summary.json" | sed 's/$/ agents/'
left=$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'tenuto-agent.*' | wc -l)
echo "$left directories of agents left behind"
