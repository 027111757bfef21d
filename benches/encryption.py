#!/usr/bin/env python3
"""Compares the processor time per gigabit with and without encryption: in TLS, and of titles.

    benches/encryption.py STORE [--rounds 3] [--viewers 8] [--memory 1GiB] [--only WORD]
                          [--tenuto target/release/tenuto]

`tenuto play` fetches the same titles as fast as it can, several times in turn, from servers that
have them in memory: in the clear, over TLS 1.3, encrypted by CENC (`cenc`, `cbcs`), as transport
streams with and without AES-128, and encrypted titles over TLS; and from nginx, which has them as
files in the page cache, with and without TLS. Each server plays the titles once before it is
measured. `--only tls` leaves out the servers without this word in their names, but for those that
others are compared with.

Processor time is the server's own (utime + stime of its processes while the players ran). On
loopback the time for receiving is partly charged to the server, so that ratios within a run are
meaningful and Gb/s are not. The last lines have the median of each server and of its ratio to the
same without encryption, round by round. Needs nginx and openssl, and a store with as many titles of
H.264 or HEVC as viewers. Nothing outside the run's directory is changed, and all started programs
are stopped.
"""
import argparse, os, statistics, subprocess, sys, tempfile
import serving

# Name; the program; the manifest, the scheme of the title's keys, TLS; what it is compared with.
SERVERS = [
    ("tenuto", "tenuto", "master.m3u8", None, False, None),
    ("tenuto tls", "tenuto", "master.m3u8", None, True, "tenuto"),
    ("tenuto cenc", "tenuto", "master.m3u8", "cenc", False, "tenuto"),
    ("tenuto cbcs", "tenuto", "master.m3u8", "cbcs", False, "tenuto"),
    ("tenuto cbcs tls", "tenuto", "master.m3u8", "cbcs", True, "tenuto"),
    ("tenuto ts", "tenuto", "master-ts.m3u8", None, False, None),
    ("tenuto ts tls", "tenuto", "master-ts.m3u8", None, True, "tenuto ts"),
    ("tenuto ts aes-128", "tenuto", "master-ts.m3u8", "cbcs", False, "tenuto ts"),
    ("nginx", "nginx", "master.m3u8", None, False, None),
    ("nginx tls", "nginx", "master.m3u8", None, True, "nginx"),
]
COMPARED = {compared for *_, compared in SERVERS if compared}


def with_tls(args, tls):
    return argparse.Namespace(**{**vars(args), "tls": tls})


def keys(run, scheme):
    """A key file that encrypts all titles."""
    path = os.path.join(run, f"{scheme}.toml")
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(f'[[key]]\ntitles = "*"\nscheme = "{scheme}"\n'
                   f'key_id = "{os.urandom(16).hex()}"\nkey = "{os.urandom(16).hex()}"\n')
    return path


def start(args, run, row):
    _, program, _, scheme, tls, _ = row
    if program == "nginx":
        return serving.nginx(with_tls(args, tls), run, os.path.join(run, "files"), "sendfile")
    more = ["--title-keys", keys(run, scheme)] if scheme else []
    return serving.tenuto(with_tls(args, tls), args.memory, more)


def measure(args, run, row, titles):
    manifest, tls = row[2], row[4]
    urls = [os.path.join(os.path.dirname(path), manifest) for path in titles]
    server = start(args, run, row)
    try:
        serving.play(with_tls(args, tls), server, urls, args.viewers)
        return serving.play(with_tls(args, tls), server, urls, args.viewers)
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--viewers", type=int, default=8)
    parser.add_argument("--memory", default="1GiB", help="of the tenuto servers; the titles must fit")
    parser.add_argument("--only", default="", help="servers with this word in their names")
    parser.add_argument("--tenuto", default="target/release/tenuto")
    parser.add_argument("--port", type=int, default=8470)
    args = parser.parse_args()
    rows = [row for row in SERVERS if args.only in row[0] or row[0] in COMPARED]
    with tempfile.TemporaryDirectory(prefix="encryption-", dir=os.path.dirname(os.path.abspath(args.store))) as run:
        os.chmod(run, 0o755)
        args.certificate, args.key = (os.path.join(run, name) for name in ("certificate.pem", "key.pem"))
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
        subprocess.run([*command.split(), "-keyout", args.key, "-out", args.certificate], check=True,
                       stderr=subprocess.DEVNULL)
        root = os.path.join(run, "files")
        server = serving.tenuto(with_tls(args, False), args.memory)
        try:
            titles = serving.mirror(server.url, root)
        finally:
            server.stop()
        open(os.path.join(root, "ready"), "w").close()
        if len(titles) < args.viewers:
            sys.exit(f"{len(titles)} titles are not enough for {args.viewers} viewers")
        results = {row[0]: [] for row in rows}
        for _ in range(args.rounds):
            for row in rows:
                result = measure(args, run, row, titles[: args.viewers])
                results[row[0]].append(result["cpu"])
                print(f"{row[0]:18} {result['cpu']:.4f} core-s/Gb  {result['rate']:6.2f} Gb/s  "
                      f"load {os.getloadavg()[0]:.1f}", flush=True)
    for name, *_, compared in rows:
        line = f"{name}: {statistics.median(results[name]):.4f} core-s/Gb"
        if compared:
            ratio = [one / other for one, other in zip(results[name], results[compared])]
            line += (f"; {statistics.median(ratio):.2f} of {compared} "
                     f"({min(ratio):.2f} to {max(ratio):.2f})")
        print(line)


if __name__ == "__main__":
    main()
