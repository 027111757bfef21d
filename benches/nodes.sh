#!/bin/sh
# Compares one storage node with two: `meter study nodes` on two servers, each in a network
# namespace of this machine behind its own link, mounted by sshfs. Needs root, iproute2,
# openssh-server and sshfs.
#
#   benches/nodes.sh TENUTO [LINK [SIZE]]     LINK: 200mbit, in the units of `tc`
#                                             SIZE of the files: 256MiB
#
# The nodes store their files in memory, so that the link limits each. Both nodes share the
# processors of this machine, which encrypt for both: choose a LINK that does not load them.
set -eu

tenuto=$(realpath "$1")
link=${2:-200mbit}
size=${3:-256MiB}
work=$(mktemp -d /dev/shm/tenuto-nodes-XXXXXX)

cleanup() {
    for n in 1 2; do
        umount "$work/at$n" 2>/dev/null || true
        # Programs that use the link end before it is removed; otherwise they would wait for it.
        # shellcheck disable=SC2046 # a list
        kill $(ip netns pids "tnode$n" 2>/dev/null) 2>/dev/null || true
        ip netns del "tnode$n" 2>/dev/null || true
        ip link del "tnodev$n" 2>/dev/null || true
    done
    # A directory that is still mounted must not be removed.
    mountpoint -q "$work/at1" || mountpoint -q "$work/at2" || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/user"
cp "$work/user.pub" "$work/authorized"
chmod 700 "$work"
cat >"$work/ssh" <<SSH
#!/bin/sh
exec $(command -v ssh) -F /dev/null -i $work/user -o StrictHostKeyChecking=no \
    -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o IdentitiesOnly=yes -l root "\$@"
SSH
chmod 755 "$work/ssh"

for n in 1 2; do
    mkdir "$work/node$n" "$work/at$n"
    ip netns add "tnode$n"
    ip link add "tnodev$n" type veth peer name eth0 netns "tnode$n"
    ip addr add "10.97.$n.1/24" dev "tnodev$n"
    ip link set "tnodev$n" up
    ip -n "tnode$n" addr add "10.97.$n.2/24" dev eth0
    ip -n "tnode$n" link set eth0 up
    tc qdisc add dev "tnodev$n" root tbf rate "$link" burst 256kb latency 50ms
    tc -n "tnode$n" qdisc add dev eth0 root tbf rate "$link" burst 256kb latency 50ms
    ip netns exec "tnode$n" "$(command -v sshd)" -f /dev/null -h "$work/host" \
        -o "PidFile=$work/sshd.$n.pid" -o "AuthorizedKeysFile=$work/authorized" \
        -o StrictModes=no -o PermitRootLogin=prohibit-password -o UsePAM=no -o UseDNS=no \
        -o "Subsystem=sftp internal-sftp"
    sshfs -o "ssh_command=$work/ssh" "10.97.$n.2:$work/node$n" "$work/at$n"
done

"$tenuto" meter study nodes --target "$work/at1" --second "$work/at2" --size "$size" --duration 3s
