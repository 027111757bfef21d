#!/usr/bin/env python3
"""Compares HTTP/2 with HTTP/1.1: processor time per gigabit over TLS, of Tenuto and of nginx, and
what idle connections take.

    benches/http2.py STORE [--rounds 3] [--connections 8] [--streams 1] [--idle 2000]
                     [--tenuto target/release/tenuto]

h2load (Debian: nghttp2-client) fetches the segments of the store's titles again and again, from the
addresses for caches, which have no sessions (`serve --origin`), and from nginx, which has them as
files. All are in memory. Processor time is the server's own; receiving on loopback is partly charged
to it, so that ratios within a run are meaningful and Gb/s are not. Idle connections have said which
protocol they speak, and wait; their memory is what the server has more. Needs nginx, h2load and
openssl. All started programs are stopped.
"""
import argparse, os, re, socket, ssl, statistics, subprocess, sys, tempfile, urllib.parse
import serving

SECONDS = 5


def segments(server):
    """The addresses of all segments, below /origin/."""
    names = re.findall(r'"hls":\s*"/t/([^"]+)/master.m3u8"', serving.get(server.url + "/titles").decode())
    found = []
    for name in names:
        master = serving.get(f"{server.url}/origin/{name}/master.m3u8").decode()
        for playlist in re.findall(r"^(\S+\.m3u8)$", master, re.M):
            path = f"/origin/{name}/{playlist}"
            lines = serving.get(server.url + path).decode().splitlines()
            found += [os.path.join(os.path.dirname(path), line) for line in lines if line and line[0] != "#"]
    return found


def copy(server, paths, root):
    for path in paths:
        target = root + path
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(serving.get(server.url + path))


def load(args, server, addresses, protocol):
    """Processor time per gigabit."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as list_of:
        list_of.write("".join(f"{server.url}{path}\n" for path in addresses))
        list_of.flush()
        command = ["h2load", "-D", str(SECONDS), "-c", str(args.connections), "-i", list_of.name]
        # Without this window a stream waits for its receiver every 64 KiB.
        command += ["--h1"] if protocol == "HTTP/1.1" else ["-m", str(args.streams), "-w", "24", "-W", "26"]
        before = serving.processor_time(server.pids())
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        cpu = serving.processor_time(server.pids()) - before
    counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored", said)
    if not counts or counts[2] != "0" or counts[3] != "0":
        sys.exit(f"not everything was served:\n{said}")
    number = int(re.search(r"traffic: .*\((\d+)\) total", said)[1])
    return cpu / (number * 8e-9), number * 8e-9 / SECONDS


def resident(server):
    total = 0
    for pid in server.pids():
        text = open(f"/proc/{pid}/status").read()
        total += int(re.search(r"RssAnon:\s+(\d+)", text)[1])
    return total * 1024


def idle(args, server, protocol):
    """Memory of a connection over which players have said which protocol they speak."""
    context = ssl._create_unverified_context()
    context.set_alpn_protocols(["h2" if protocol == "HTTP/2" else "http/1.1"])
    before, connections = resident(server), []
    for _ in range(args.idle):
        plain = socket.create_connection(("127.0.0.1", urllib.parse.urlsplit(server.url).port))
        connections.append(context.wrap_socket(plain))
        # The preface and no settings (RFC 9113, 3.4), or a request.
        hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
        connections[-1].sendall(hello if protocol == "HTTP/2" else b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        connections[-1].recv(4096)
    most = resident(server)
    for connection in connections:
        connection.close()
    return (most - before) / args.idle


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--streams", type=int, default=1, help="at once over a connection of HTTP/2")
    parser.add_argument("--idle", type=int, default=2000, help="idle connections; 0: none")
    parser.add_argument("--tenuto", default="target/release/tenuto")
    parser.add_argument("--port", type=int, default=8471)
    args = parser.parse_args()
    args.tls = True
    with tempfile.TemporaryDirectory(prefix="http2-", dir=os.path.dirname(os.path.abspath(args.store))) as run:
        os.chmod(run, 0o755)
        root = os.path.join(run, "files")
        args.certificate, args.key = (os.path.join(run, name) for name in ("certificate.pem", "key.pem"))
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
        subprocess.run([*command.split(), "-keyout", args.key, "-out", args.certificate], check=True,
                       stderr=subprocess.DEVNULL)
        serving.NGINX = serving.NGINX.replace("backlog=4096 {tls}", "backlog=4096 http2 {tls}")
        more = ["--origin", "64", "--max-connections", str(args.idle + 100)]
        tenuto = serving.tenuto(args, "1GiB", more)
        nginx = None
        try:
            addresses = segments(tenuto)
            copy(tenuto, addresses, root)
            open(os.path.join(root, "ready"), "w").close()
            args.port += 1
            nginx = serving.nginx(args, run, root, "sendfile")
            results = {}
            for _ in range(args.rounds):
                for protocol in ("HTTP/1.1", "HTTP/2"):
                    for name, server in (("tenuto", tenuto), ("nginx", nginx)):
                        cpu, rate = load(args, server, addresses, protocol)
                        results.setdefault((name, protocol), []).append(cpu)
                        print(f"{name:7} {protocol:9} {cpu:.4f} core-s/Gb  {rate:6.2f} Gb/s", flush=True)
            for name in ("tenuto", "nginx"):
                ratio = [a / b for a, b in zip(results[name, "HTTP/2"], results[name, "HTTP/1.1"])]
                print(f"{name}: HTTP/2 to HTTP/1.1, median {statistics.median(ratio):.2f} "
                      f"({min(ratio):.2f} to {max(ratio):.2f})")
            ratio = [a / b for a, b in zip(results["tenuto", "HTTP/2"], results["nginx", "HTTP/2"])]
            print(f"HTTP/2, tenuto to nginx, median {statistics.median(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f})")
            for protocol in ("HTTP/1.1", "HTTP/2") if args.idle else ():
                print(f"tenuto {protocol:9} {idle(args, tenuto, protocol) / 1024:.0f} KiB an idle connection")
        finally:
            tenuto.stop()
            if nginx:
                nginx.stop()


if __name__ == "__main__":
    main()
