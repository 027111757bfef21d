#!/bin/sh
# Measures how closely many agents begin together, and what a controller says of a lost one: agents
# that run on this machine, each a process with a port of its own.
#
#   benches/agents.sh TENUTO [AGENTS [PROGRAM]]
#
# Needs python3. AGENTS is 100 by default. PROGRAM is the agent, for example target/agent/tenuto-agent; by default
# the `tenuto-agent` beside TENUTO.
#
# Prints how late the agents began after the common moment (first and last of them, and their
# difference, the start skew) and how closely their clocks are known. Then one agent is killed
# during a run: the error, and the exit code.
#
# All agents share the processors of this machine. As root, agents (and not their workers) have
# precedence over other programs, so that each gets a processor when it wakes, as on a machine of
# its own; otherwise the last of them wait for the workers of the first.
set -eu

tenuto=$(realpath "$1")
agents=${2:-100}
program=$(realpath "${3:-$(dirname "$tenuto")/tenuto-agent}")
work=$(mktemp -d)
cd "$work"
pids=''

cleanup() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null || true
    done
    cd /
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

mkdir films
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >secret
chmod 600 secret
names=''
i=0
while [ "$i" -lt "$agents" ]; do
    port=$((21000 + i))
    "$program" films --token-file secret --listen "127.0.0.1:$port" >"agent.$i" 2>&1 &
    last=$!
    pids="$pids $last"
    names="$names${names:+,}127.0.0.1:$port"
    i=$((i + 1))
done

# Threads of agents come with a controller, so that they are looked for again and again. A process
# that they start has no precedence.
cat >precedence.py <<'PY'
import os, sys, time
while True:
    for pid in sys.argv[1:]:
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
                os.sched_setscheduler(int(thread), policy, os.sched_param(1))
        except OSError:
            pass
    time.sleep(0.1)
PY
sleep 2
if [ "$(id -u)" = 0 ]; then
    # shellcheck disable=SC2086 # one word each
    python3 precedence.py $pids &
    pids="$pids $!"
fi

run() {
    "$tenuto" meter run --profile audio-16ch --streams "$agents" --duration "$1" --size 8MiB \
        --target "$work/films" --agents "$names" --token-file secret --json
}

run 3s >summary.json || echo "exit code $?"
python3 - <<'PY'
import json
summary = json.load(open("summary.json"))
agents = summary["agents"]
late = sorted(agent["begun_late_ns"] / 1e6 for agent in agents)
clocks = sorted(agent["clock"]["wrong_by_at_most_ns"] / 1e3 for agent in agents)
print(f"{len(agents)} agents")
print(f"began {late[0]:.2f} to {late[-1]:.2f} ms after the common moment: start skew {late[-1] - late[0]:.2f} ms")
print(f"clocks known to {clocks[len(clocks) // 2]:.0f} us in the median, {clocks[-1]:.0f} us at worst")
PY

(sleep 6 && kill -9 "$last") &
run 12s >summary.json 2>errors && code=0 || code=$?
echo "after the loss of the last agent: exit code $code"
grep '^error' errors
