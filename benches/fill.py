#!/usr/bin/env python3
"""Copies that a node of a cluster is filled with, beside as many viewers as it admits.

    benches/fill.py [--first viewers,fill,peers] [--titles 30] [--copies 4] [--seconds 90] [--rate 4]
                    [--fill-rate 20Mbps] [--model st39183w] [--program tenuto] [--dir DIR]

Needs ffmpeg with libx264, etcd, and 2 GB. A node serves --titles as --model, and has a bucket with
--copies further titles. With --first viewers, viewers of all titles come until no more are admitted;
then a director orders the copies. With --first fill, the copies are ordered first, and viewers come
while disk time is kept for them. Prints for each the viewers, the rate for which disk time was kept,
the rate of the copies, and what was late. With --first peers, the node gets its copies, then viewers,
and a second node with an empty store is started, which gets the same copies: printed is how much of
them it got from the first. The bucket is a server in this script, with files.
"""

import argparse, http.server, json, os, re, shutil, subprocess, tempfile, threading, time
import urllib.parse, urllib.request

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
ETCD, PEERS, NODE, OTHER, DIRECTOR = 18379, 18380, 18081, 18082, 18090


class Bucket(http.server.BaseHTTPRequestHandler):
    """The part of the S3 protocol that `tenuto bucket` needs; signatures are not looked at."""

    protocol_version = "HTTP/1.1"
    folder = ""

    def path_of(self):
        key = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        return os.path.join(Bucket.folder, key.strip("/").replace("/", "%"))

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path_of()
        if self.headers.get("If-None-Match") == "*" and os.path.exists(path):
            return self.answer(412)
        with open(path, "wb") as file:
            file.write(body)
        self.answer(200)

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        if "list-type" in query:
            return self.list(query.get("prefix", [""])[0])
        try:
            with open(self.path_of(), "rb") as file:
                self.answer(200, file.read())
        except FileNotFoundError:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    do_HEAD = do_GET

    def list(self, prefix):
        """All keys on one page: there are few."""
        entries = []
        for name in sorted(os.listdir(Bucket.folder)):
            _, _, key = name.replace("%", "/").partition("/")
            if key.startswith(prefix):
                size = os.path.getsize(os.path.join(Bucket.folder, name))
                entry = f"<Key>{urllib.parse.quote(key)}</Key><Size>{size}</Size>"
                entries.append(f'<Contents>{entry}<ETag>"{size}"</ETag></Contents>')
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        body = f'<ListBucketResult xmlns="{space}"><EncodingType>url</EncodingType>'
        self.answer(200, (body + "".join(entries) + "</ListBucketResult>").encode())

    def log_message(self, *_):
        pass


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
        return response.read().decode()


def until(what, holds, seconds=60):
    end = time.time() + seconds
    while True:
        try:
            if holds():
                return
        except (OSError, ValueError):
            pass  # It does not answer yet.
        if time.time() > end:
            raise SystemExit(f"not within {seconds} s: {what}")
        time.sleep(0.2)


def copies(port=None):
    return json.loads(get(port or NODE, "/status"))["cluster"]["copies"]


def counted(names):
    """Metrics of the node, by their names."""
    found = {}
    for line in get(NODE, "/metrics").splitlines():
        match = re.match(r"([a-z_]+)(?:\{.*\})? ([0-9.]+)$", line)
        if match and match[1] in names:
            found[match[1]] = found.get(match[1], 0) + float(match[2])
    return found


class Bench:
    def __init__(self, options, folder, port):
        self.options, self.folder, self.bucket = options, folder, f"http://127.0.0.1:{port}"
        self.parts = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def tenuto(self, line, **more):
        words = [self.options.program] + line.split()
        return subprocess.run(words, cwd=self.folder, check=True, capture_output=True, **more)

    def start(self, words):
        """A part that runs until the end of a measurement; its output is in a file."""
        with open(self.path(f"{len(self.parts)}.log"), "ab") as log:
            part = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
        self.parts.append(part)
        return part

    def stop(self):
        for part in reversed(self.parts):
            part.terminate()
        for part in self.parts:
            part.wait()
        self.parts = []

    def prepare(self):
        """The titles: one film under many names, so that viewers share no reads."""
        o = self.options
        video = int(o.rate * 1000 * 0.96) - 100
        words = (
            f"ffmpeg -nostdin -v error -y -f lavfi -i testsrc2=s=1280x720:r=25:d={o.seconds},noise=alls=30"
            f" -f lavfi -i sine=440:d={o.seconds} -c:v libx264 -preset ultrafast -g 50 -b:v {video}k"
            f" -minrate {video}k -maxrate {video}k -bufsize {video}k -c:a aac -b:a 96k film.mp4"
        )
        subprocess.run(words.split(), cwd=self.folder, check=True)
        each = os.path.getsize(self.path("film.mp4")) + (8 << 20)
        for store, kind, count in [("bucket.store", "copy", o.copies), ("node.master", "film", o.titles)]:
            size = each * (o.titles + o.copies) + (256 << 20)
            self.tenuto(f"format {store} --size {size}")
            for number in range(count):
                name = f"{kind}{number:02}.mp4"
                os.link(self.path("film.mp4"), self.path(name))
                self.tenuto(f"ingest {store} {name}")
                os.remove(self.path(name))
        self.tenuto(f"bucket push s3://films bucket.store --endpoint {self.bucket}")
        with open(self.path("secret"), "wb") as file:
            file.write(b"s" * 32)
        os.chmod(self.path("secret"), 0o600)

    def measure(self, first):
        o = self.options
        shutil.copy(self.path("node.master"), self.path("node.store"))
        shutil.rmtree(self.path("etcd"), ignore_errors=True)
        here, peers = f"http://127.0.0.1:{ETCD}", f"http://127.0.0.1:{PEERS}"
        words = f"etcd --data-dir etcd --listen-client-urls {here} --advertise-client-urls {here}"
        words += f" --listen-peer-urls {peers} --initial-advertise-peer-urls {peers}"
        self.start(f"{words} --initial-cluster default={peers}".split())
        until("etcd answers", lambda: "true" in get(ETCD, "/health"))
        cluster = f"--cluster {here} --cluster-name c --cluster-secret secret"
        source = f"--bucket s3://films --bucket-endpoint {self.bucket}"
        self.node("node", NODE, f"{cluster} {source}")
        if first == "peers":
            return self.measure_peers(cluster, source)
        if first == "fill":
            self.order(cluster, source)
        viewers = self.view()
        if first == "viewers":
            self.order(cluster, source)
        begun, watched = time.time(), []
        while copies()["filled"] < o.copies and time.time() - begun < o.seconds * 4:
            watched += [copy["kept_rate"] or 0 for copy in copies()["filling"]]
            time.sleep(0.5)
        took, report = time.time() - begun, copies()
        played = json.loads(viewers.communicate()[0])["totals"]
        # The last viewer was admitted while copies were written: those before are not counted.
        rate = (report["filled_bytes"] - self.before) * 8 / took / 1e6
        kept = sum(watched) / max(len(watched), 1) / 1e6
        late = counted({"tenuto_deadline_misses_total", "tenuto_guarantee_violations_total"})
        misses, violations = (int(late.get(f"tenuto_{name}_total", 0)) for name in
                              ["deadline_misses", "guarantee_violations"])
        print(
            f"{first:>7} first: {played['admitted']} of {o.titles} viewers admitted,"
            f" {played['stalls']} stalls, {misses} deadline misses, {violations} late reads;"
            f" {report['filled']} of {o.copies} copies in {took:.0f} s, {rate:.1f} Mb/s,"
            f" of which disk time was kept for {kept:.1f}; {report['failures']} failures",
            flush=True,
        )
        self.stop()

    def node(self, name, port, cluster):
        o, address = self.options, f"127.0.0.1:{port}"
        node = f"serve {name}.store --listen {address} --node {name} --node-address http://{address}"
        words = f"{node} {cluster} --fill-rate {o.fill_rate} --as-disk {o.model}"
        self.start([o.program] + words.split())
        until("the node is registered", lambda: json.loads(get(port, "/status"))["cluster"]["registered"])

    def measure_peers(self, cluster, source):
        """A second node, filled while viewers play at the first."""
        o = self.options
        self.order(cluster, source, wanted=2)
        until("the node has its copies", lambda: copies()["filled"] == o.copies, o.seconds * 4)
        viewers = self.view()
        size = os.path.getsize(self.path("bucket.store"))
        self.tenuto(f"format other.store --size {size} --destroy")
        self.node("other", OTHER, f"{cluster} {source}")
        begun = time.time()
        until("the other has them", lambda: copies(OTHER)["filled"] == o.copies, o.seconds * 4)
        took, report = time.time() - begun, copies(OTHER)
        played = json.loads(viewers.communicate()[0])["totals"]
        late = counted({"tenuto_deadline_misses_total", "tenuto_guarantee_violations_total"})
        of_peers, all_bytes = report["filled_bytes_of_peers"], report["filled_bytes"]
        print(
            f"  peers first: {played['admitted']} of {o.titles} viewers admitted,"
            f" {played['stalls']} stalls, {sum(map(int, late.values()))} late reads;"
            f" {report['filled']} copies at the other node in {took:.0f} s,"
            f" {all_bytes * 8 / took / 1e6:.1f} Mb/s, {of_peers / all_bytes:.0%} of the bytes from"
            f" the first node; {report['failures']} failures",
            flush=True,
        )
        self.stop()

    def order(self, cluster, source, wanted=1):
        words = f"director --listen 127.0.0.1:{DIRECTOR} {cluster} {source} --copies {wanted}"
        self.start([self.options.program] + words.split())
        until("a copy is written", lambda: copies()["filling"] or copies()["filled"])

    def view(self):
        """Viewers of all titles at once: more than the node admits."""
        o = self.options
        words = f"play http://127.0.0.1:{NODE} --viewers {o.titles} --arrivals every:200ms --json"
        viewers = subprocess.Popen(
            [o.program] + words.split(), cwd=self.folder, stdout=subprocess.PIPE
        )
        time.sleep(o.titles * 0.2 + 5)
        self.before = copies()["filled_bytes"]
        return viewers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", default="viewers,fill")
    parser.add_argument("--titles", type=int, default=30)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--rate", type=float, default=4)
    parser.add_argument("--fill-rate", default="20Mbps")
    parser.add_argument("--model", default="st39183w")
    parser.add_argument("--program", default="tenuto")
    parser.add_argument("--dir")
    options = parser.parse_args()
    options.program = shutil.which(options.program) or options.program
    os.environ.update(KEYS)
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        Bucket.folder = os.path.join(folder, "bucket")
        os.mkdir(Bucket.folder)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        bench = Bench(options, folder, server.server_address[1])
        try:
            bench.prepare()
            for first in options.first.split(","):
                bench.measure(first)
        finally:
            bench.stop()


main()
