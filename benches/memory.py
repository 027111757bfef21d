#!/usr/bin/env python3
"""Measures the memory of a server under load, and whether it stops growing.

    benches/memory.py STORE [--viewers 200] [--seconds 60] [--manifests 10000]

Serves the store with little memory for media (--memory) and starts all viewers at once. Then
requests manifests without playing them. Prints the server's resident memory repeatedly. No viewer
is refused (--admission none).
"""
import argparse, json, os, signal, subprocess, sys, time, urllib.request

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("store")
parser.add_argument("--viewers", type=int, default=200)
parser.add_argument("--seconds", type=int, default=60)
parser.add_argument("--manifests", type=int, default=10_000)
parser.add_argument("--memory", default="64MiB")
parser.add_argument("--tenuto", default="target/release/tenuto")
parser.add_argument("--port", type=int, default=8471)
args = parser.parse_args()
url = f"http://127.0.0.1:{args.port}"


def get(path):
    with urllib.request.urlopen(url + path) as answer:
        return answer.read()


def resident():
    line = next(l for l in open(f"/proc/{server.pid}/status") if l.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def say(what):
    status = json.loads(get("/status"))
    print(f"{resident():8.1f} MiB  {status['sessions']:6} sessions  {status['connections']:5} connections  {what}", flush=True)
    return status["sessions"]


server = subprocess.Popen(
    [args.tenuto, "serve", args.store, "--listen", f"127.0.0.1:{args.port}", "--memory", args.memory,
     "--admission", "none", "--grace", "1s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    for _ in range(100):
        try:
            get("/healthz")
            break
        except OSError:
            time.sleep(0.1)
    print(f"--memory {args.memory}")
    say("before the first viewer")
    players = subprocess.Popen([args.tenuto, "play", url, "--viewers", str(args.viewers), "--duration",
                                f"{args.seconds}s", "--json"], stdout=subprocess.PIPE)
    for _ in range(6):
        time.sleep(args.seconds / 6 - 0.5)
        say("playing")
    totals = json.loads(players.communicate()[0])["totals"]
    print(f"          {totals['admitted']} viewers, {totals['bytes'] / 1e9:.2f} GB")
    masters = [title["hls"] for title in json.loads(get("/titles"))["titles"]]
    for _ in range(2):
        start = time.monotonic()
        for number in range(args.manifests):
            get(masters[number % len(masters)])
        say(f"{args.manifests} manifests in {time.monotonic() - start:.0f} s")
        while say("their viewers do not come") > args.viewers:
            time.sleep(6)
finally:
    server.send_signal(signal.SIGINT)
    server.wait()
