#!/usr/bin/env python3
"""How many viewers Tenuto and nginx hold on the same slow disk, with the same memory.

    benches/evening.py FOLDER [--audience distinct,one,zipf] [--viewers 300] [--tenuto target/release/tenuto]
    benches/evening.py FOLDER --disk hdd-20tb --audience distinct --viewers 60,110,140,200

Makes a film of 60 s at 5.33 Mb/s and offers it as many titles, each with bytes of its own: to Tenuto
in a store on one disk, to nginx as the same HLS files in ext4 on another. The kernel holds each disk
to --rate (blkio throttle), or `tenuto disk emulate` gives it the times of a model. Each server gets
--memory: Tenuto as its buffers, nginx as a memory cgroup in which its page cache counts. `tenuto play`
is the audience, ten viewers a second:

    distinct   a title for each viewer, none twice
    one        the same title for all
    zipf       a title of rank k with a probability proportional to 1/k

Tenuto refuses viewers, nginx admits everybody; what counts is how many play without a stall. Needs
root, nginx, ffmpeg, version 1 of the control groups memory and blkio, and 25 GB in FOLDER. Nothing
else is changed, and all started programs are stopped.
"""
import argparse, json, os, shutil, subprocess, sys
from serving import HOW, NGINX, Server, mirror

FILM = (
    "-f lavfi -i testsrc2=s=1280x720:r=25:d=60,noise=alls=20:allf=t -f lavfi -i sine=440:d=60:r=48000 "
    "-c:v libx264 -preset ultrafast -b:v 5200k -minrate 5200k -maxrate 5200k -bufsize 2600k "
    "-x264-params nal-hrd=cbr -g 50 -pix_fmt yuv420p -c:a aac -b:a 128k"
)
CGROUP = "/sys/fs/cgroup/{}/tenuto-evening"


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return done.stdout.strip()


def write(path, text):
    with open(path, "w") as file:
        file.write(str(text))


class Limits:
    """The control groups of one server: a throttled device, and memory for nginx's page cache."""

    def __init__(self, disk, rate, memory):
        self.groups = []
        if not disk.emulator:
            number = os.stat(disk.device).st_rdev
            self.add("blkio", "blkio.throttle.read_bps_device", f"{os.major(number)}:{os.minor(number)} {rate}")
        if memory:
            self.add("memory", "memory.limit_in_bytes", memory)

    def add(self, controller, name, value):
        group = CGROUP.format(controller)
        os.makedirs(group, exist_ok=True)
        write(f"{group}/{name}", value)
        self.groups.append(group)

    def command(self, command):
        """`command`, started inside the groups."""
        joins = "".join(f"echo $$ > {group}/cgroup.procs; " for group in self.groups)
        return ["sh", "-c", f'{joins}exec "$@"', "sh", *command]

    def remove(self):
        for group in self.groups:
            os.rmdir(group)


class Disk:
    """A block device with a file behind it: throttled by the kernel, or with the times of a model."""

    def __init__(self, args, name):
        self.image = os.path.join(args.folder, f"evening-{name}.img")
        self.known = os.path.exists(self.image)
        self.tenuto, self.emulator = args.tenuto, None
        size = args.titles * 60_000_000 + (1 << 30)
        if args.disk == "throttled":
            run("truncate", "-s", str(size), self.image)
            self.device = run("losetup", "--find", "--show", "--direct-io=on", self.image)
            return
        command = [args.tenuto, "disk", "emulate", args.disk, "--backing", self.image, "--size", str(size)]
        command += ["--attach", "--no-delay"]
        self.emulator = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = next((line for line in self.emulator.stdout if line.startswith("block device")), None)
        self.device = line.split()[-1] if line else sys.exit(f"{' '.join(command)}: no block device")

    def slow_down(self):
        if self.emulator:
            run(self.tenuto, "disk", "stats", self.image, "--delay", "on")

    def detach(self):
        if self.emulator:
            self.emulator.terminate()
            self.emulator.wait()
        else:
            run("losetup", "--detach", self.device)


def fill(args, store, files, mounted):
    """Puts the titles on both disks."""
    film = os.path.join(args.folder, "evening-film.mp4")
    run("ffmpeg", "-nostdin", "-v", "error", "-y", *FILM.split(" "), film)
    run(args.tenuto, "format", store.device, "--destroy")
    for number in range(args.titles):
        run(args.tenuto, "ingest", store.device, film, "--title", f"t{number:03}")
    run("mkfs.ext4", "-q", "-F", files.device)
    run("mount", files.device, mounted)
    # The first start measures the disk, which has to be as slow as it will be.
    store.slow_down()
    limits = Limits(store, args.rate, None)
    server = tenuto(args, store, limits)
    mirror(server.url, mounted, lambda title: title["name"] == "t000")
    server.stop()
    limits.remove()
    for number in range(1, args.titles):
        shutil.copytree(f"{mounted}/t/t000", f"{mounted}/t/t{number:03}")
    write(f"{mounted}/ready", "")
    os.sync()
    run("umount", mounted)


def base_url(args):
    return f"http://127.0.0.1:{args.port}"


def tenuto(args, store, limits):
    command = [args.tenuto, "serve", store.device, "--listen", f"127.0.0.1:{args.port}", "--memory", str(args.memory)]
    return Server(limits.command(command + args.serve.split()), base_url(args), "/healthz")


def nginx(args, how, root, limits):
    cache, how = HOW[how]
    config = os.path.join(args.folder, "evening-nginx.conf")
    write(config, NGINX.format(run=args.folder, root=root, port=args.port, tls="", cache=cache, how=how, user="user root;"))
    return Server(limits.command(["nginx", "-p", args.folder, "-c", config]), base_url(args), "/ready")


def play(args, server, audience, viewers):
    urls = [f"{server.url}/t/t{number:03}/master.m3u8" for number in range(args.titles)]
    choice = "zipf:1.0" if audience == "zipf" else "in-turn"
    command = [args.tenuto, "play", *(urls[:1] if audience == "one" else urls), "--viewers", str(viewers)]
    command += ["--arrivals", "every:100ms", "--choice", choice, "--duration", f"{args.seconds}s", "--json"]
    played = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return json.loads(played.stdout)


def bytes_read(device):
    """What the device has read since it exists."""
    return int(open(f"/sys/block/{os.path.basename(device)}/stat").read().split()[2]) * 512


def measure(args, store, files, root):
    print(f"{'audience':9} {'server':15} offered admitted stalled worst-stall  start-up p50/p99     read")
    for audience in args.audience.split(","):
        for viewers in map(int, args.viewers.split(",")):
            if audience == "distinct":
                viewers = min(viewers, args.titles)
            for name in args.servers.split(","):
                one_round(args, store, files, root, audience, viewers, name)


def one_round(args, store, files, root, audience, viewers, name):
    disk = store if name == "tenuto" else files
    write("/proc/sys/vm/drop_caches", 3)
    limits = Limits(disk, args.rate, None if name == "tenuto" else args.memory)
    if name == "tenuto":
        server = tenuto(args, store, limits)
    else:
        how, _, kibibytes = name.partition(":")
        write(f"/sys/block/{os.path.basename(disk.device)}/queue/read_ahead_kb", kibibytes or 128)
        server = nginx(args, how, root, limits)
    before = bytes_read(disk.device)
    report = play(args, server, audience, viewers)
    read = bytes_read(disk.device) - before
    server.stop()
    limits.remove()
    totals, start = report["totals"], report["startup_ms"]
    worst = max(viewer["longest_stall_ms"] or 0 for viewer in report["viewers"])
    print(
        f"{audience:9} {name:15} {totals['arrived']:7} {totals['admitted']:8} {totals['viewers_with_stalls']:7}"
        f" {worst / 1000:9.1f} s {start['p50'] / 1000:8.2f} /{start['p99'] / 1000:6.2f} s {read / 1e9:5.1f} GB"
        f"  {totals['refused_by'] or ''}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--audience", default="distinct,one,zipf")
    parser.add_argument("--titles", type=int, default=200)
    parser.add_argument("--viewers", default="300", help="numbers of viewers, each a round of its own")
    parser.add_argument("--servers", default="tenuto,sendfile", help="also sendfile:KIBIBYTES of read-ahead, directio")
    parser.add_argument("--disk", default="throttled", help="or the name of a model to emulate")
    parser.add_argument("--seconds", type=int, default=55, help="duration of each run")
    parser.add_argument("--rate", type=int, default=100 << 20, help="bytes per second of the throttled disk")
    parser.add_argument("--memory", type=int, default=512 << 20, help="bytes")
    parser.add_argument("--serve", default="", help="more options of `tenuto serve`: --serve='--wait 2s'")
    parser.add_argument("--keep", action="store_true", help="leave the devices' files for the next run")
    parser.add_argument("--tenuto", default="target/release/tenuto")
    parser.add_argument("--port", type=int, default=8471)
    args = parser.parse_args()
    args.folder, args.tenuto = os.path.abspath(args.folder), os.path.abspath(args.tenuto)
    mounted = os.path.join(args.folder, "evening-files")
    os.makedirs(mounted, exist_ok=True)
    store, files = disks = [Disk(args, "store"), Disk(args, "files")]
    try:
        if not files.known:
            fill(args, *disks, mounted)
        for disk in disks:
            disk.slow_down()
        run("mount", files.device, mounted)
        measure(args, store, files, mounted)
    finally:
        if os.path.ismount(mounted):
            run("umount", mounted)
        for disk in disks:
            disk.detach()
        for name in [] if args.keep else ["store.img", "files.img", "film.mp4", "nginx.conf"]:
            if os.path.exists(path := os.path.join(args.folder, f"evening-{name}")):
                os.remove(path)


main()
