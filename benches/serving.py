#!/usr/bin/env python3
"""Compares the processor time per gigabit: Tenuto and nginx serve the same HLS segments to players.

    benches/serving.py STORE [--rounds 5] [--viewers 20] [--tls] [--ts] [--tenuto target/release/tenuto]

Copies the store's titles, as a Tenuto server serves them, into files. Then `tenuto play` fetches
them as fast as it can (with a buffer longer than the titles), several times in turn, from:

    warm   tenuto with all titles in its memory        nginx, sendfile, all in the page cache
    cold   tenuto with titles that were never read     nginx, directio with a thread pool

Processor time is the server's own (utime + stime of its processes while the players ran). On
loopback the time for receiving is partly charged to the server, so ratios within a run are
meaningful and Gb/s are not. In the cold rounds each viewer has its own title as far as there are
titles. The kernel clears memory at its first use: with a --memory that the titles of the first,
unmeasured play fill (as many as viewers), the cold rounds are free of that. With --ts the segments
are MPEG transport streams, which nginx has as files. With --tls both serve TLS 1.3 with one
certificate that is made for the run. Needs nginx, and openssl with --tls. Nothing outside the run's
directory is changed, and all started programs are stopped.
"""
import argparse, json, os, re, signal, ssl, statistics, subprocess, sys, tempfile, time
import urllib.parse, urllib.request

NGINX = """
worker_processes 2; pid {run}/nginx.pid; error_log {run}/error.log warn; daemon off; {user}
thread_pool default threads=32 max_queue=65536;
events {{ worker_connections 16384; multi_accept on; }}
http {{
  client_body_temp_path {run}/t1; proxy_temp_path {run}/t2; fastcgi_temp_path {run}/t3;
  uwsgi_temp_path {run}/t4; scgi_temp_path {run}/t5;
  types {{ application/vnd.apple.mpegurl m3u8; video/mp4 mp4 m4s; video/mp2t ts; }}
  access_log off; keepalive_requests 1000000; tcp_nopush on; tcp_nodelay on; {cache}
  server {{ listen 127.0.0.1:{port} backlog=4096 {tls}; root {root}; location / {{ {how} }} }}
}}
"""
HOW = {
    "sendfile": ("open_file_cache max=10000 inactive=600s;", "sendfile on;"),
    # With open_file_cache, requests share a descriptor whose O_DIRECT is taken away for tails.
    "directio": ("", "sendfile off; aio threads; directio 512; directio_alignment 4k; output_buffers 2 512k;"),
}


def base_url(args):
    return f"{'https' if args.tls else 'http'}://127.0.0.1:{args.port}"


def get(url):
    with urllib.request.urlopen(url, context=ssl._create_unverified_context()) as answer:
        return answer.read()


def wait_for(url):
    for _ in range(200):
        try:
            return get(url)
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url} does not answer")


def processor_time(pids):
    total = 0
    for pid in pids:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


class Server:
    """A started server that answers for the path `ready`."""

    def __init__(self, command, url, ready):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = url
        try:
            wait_for(url + ready)
        except SystemExit:
            self.stop()
            raise

    def pids(self):
        children = open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split()
        return [self.process.pid, *children]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def mirror(url, root, wanted=lambda title: True, manifest="master.m3u8"):
    """The wanted titles as files, their playlists without sessions."""
    masters = []
    for title in filter(wanted, json.loads(get(url + "/titles"))["titles"]):
        path = os.path.join(os.path.dirname(title["hls"]), manifest)
        folder = os.path.join(root, urllib.parse.unquote(os.path.dirname(path)).lstrip("/"))
        os.makedirs(folder, exist_ok=True)
        todo, seen = [os.path.basename(path)], set()
        while todo:
            name = todo.pop()
            plain = name.split("?")[0]
            if plain in seen:
                continue
            seen.add(plain)
            body = get(f"{url}{os.path.dirname(path)}/{name}")
            if plain.endswith(".m3u8"):
                text = body.decode()
                # Pictures for winding are no part of a play.
                text = re.sub(r"#EXT-X-I-FRAME-STREAM-INF.*\n", "", text)
                todo += re.findall(r'URI="([^"]+)"', text)
                todo += [line for line in text.splitlines() if line and not line.startswith("#")]
                body = re.sub(r"\?s=[^\"\s]+", "", text).encode()
            target = os.path.join(folder, plain)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(body)
        masters.append(path)
    os.sync()
    return masters


def loopback():
    line = next(l for l in open("/proc/net/dev") if l.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def play(args, server, urls, viewers):
    """Processor time of the server, and duration of the transfer."""
    command = [args.tenuto, "play", *(server.url + u for u in urls), "--viewers", str(viewers)]
    command += ["--buffer", "1h", "--duration", f"{SECONDS}s", "--json"]
    command += ["--insecure"] if args.tls else []
    cpu, first = processor_time(server.pids()), loopback()
    with tempfile.TemporaryFile() as out:
        process, seen = subprocess.Popen(command, stdout=out), [(time.monotonic(), first)]
        while process.poll() is None:
            seen.append((time.monotonic(), loopback()))
            time.sleep(0.01)
        cpu = processor_time(server.pids()) - cpu
        out.seek(0)
        totals = json.load(out)["totals"]
    if totals["admitted"] != viewers or totals["failed"]:
        sys.exit(f"not everybody was served: {totals}")
    start = next(t for t, n in seen if n > first + 1_000_000)
    end = next(t for t, n in seen if n - first > 0.99 * totals["bytes"])
    if end - seen[0][0] > SECONDS - 1:
        sys.exit("the bytes had not all come when the viewers left; take fewer viewers")
    gigabits = totals["bytes"] * 8e-9
    return {"cpu": cpu / gigabits, "rate": gigabits / (end - start), "gigabits": gigabits}


def drop_from_page_cache(root):
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def tenuto(args, memory, more=()):
    command = [args.tenuto, "serve", args.store, "--listen", f"127.0.0.1:{args.port}"]
    command += ["--tls-certificate", args.certificate, "--tls-key", args.key] if args.tls else []
    return Server([*command, "--memory", memory, "--admission", "none", "--grace", "1s", *more], base_url(args), "/healthz")


def nginx(args, run, root, how):
    cache, location = HOW[how]
    user = "user root;" if os.geteuid() == 0 else ""
    tls = f"ssl; ssl_certificate {args.certificate}; ssl_certificate_key {args.key}; ssl_protocols TLSv1.3"
    config = os.path.join(run, f"{how}.conf")
    with open(config, "w") as file:
        file.write(NGINX.format(run=run, root=root, port=args.port, tls=tls if args.tls else "", cache=cache,
                                how=location, user=user))
    return Server(["nginx", "-p", run, "-c", config], base_url(args), "/ready")


def reads_and_sends(server):
    metrics = get(server.url + "/metrics").decode()
    return {name: float(value) for name, value in re.findall(r"^(tenuto_\w+)(?:{[^}]*})? (\S+)$", metrics, re.M)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--tenuto", default="target/release/tenuto")
    parser.add_argument("--port", type=int, default=8470)
    parser.add_argument("--tls", action="store_true", help="over TLS 1.3")
    parser.add_argument("--ts", action="store_true", help="HLS with MPEG transport streams")
    parser.add_argument("--memory", default="1GiB", help="of the tenuto servers")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="serving-", dir=os.path.dirname(os.path.abspath(args.store))) as run:
        os.chmod(run, 0o755)
        root = os.path.join(run, "files")
        args.certificate, args.key = (os.path.join(run, name) for name in ("certificate.pem", "key.pem"))
        if args.tls:
            command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
            subprocess.run([*command.split(), "-keyout", args.key, "-out", args.certificate], check=True,
                           stderr=subprocess.DEVNULL)
        server = tenuto(args, args.memory)
        titles = mirror(server.url, root, manifest="master-ts.m3u8" if args.ts else "master.m3u8")
        open(os.path.join(root, "ready"), "w").close()
        server.stop()
        measure(args, run, root, titles)


def measure(args, run, root, titles):
    n = args.viewers
    if len(titles) < 3 * n:
        sys.exit(f"{len(titles)} titles are not enough: {n} each to warm up on, to be cold, and to be warm")
    before, cold, warm = titles[:n], titles[n : 2 * n], titles[2 * n : 2 * n + max(1, n // 4)]
    results = {}

    def note(name, result):
        results.setdefault(name, []).append(result)
        print(f"{name:16} {result['cpu']:.4f} core-s/Gb  {result['rate']:6.2f} Gb/s  load {os.getloadavg()[0]:.1f}", flush=True)

    for _ in range(args.rounds):
        server = tenuto(args, args.memory)
        play(args, server, before, n)  # the first use of memory costs extra once
        note("cold tenuto", play(args, server, cold, n))
        play(args, server, warm, n)
        note("warm tenuto", play(args, server, warm, n))
        server.stop()
        server = nginx(args, run, root, "directio")
        drop_from_page_cache(root)
        play(args, server, before, n)
        note("cold directio", play(args, server, cold, n))
        server.stop()
        server = nginx(args, run, root, "sendfile")
        play(args, server, warm, n)
        note("warm sendfile", play(args, server, warm, n))
        server.stop()
    for one, other in [("cold tenuto", "cold directio"), ("warm tenuto", "warm sendfile")]:
        ratio = [a["cpu"] / b["cpu"] for a, b in zip(results[one], results[other])]
        cpu = [statistics.median(r["cpu"] for r in results[name]) for name in (one, other)]
        print(f"{one}: {cpu[0]:.4f}, {other}: {cpu[1]:.4f} core-s/Gb; ratio round by round, "
              f"median {statistics.median(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f})")


# Seconds of a play; the bytes arrive in the first of them.
SECONDS = 12

if __name__ == "__main__":
    main()
