#!/usr/bin/env python3
"""An evening on a slow disk: how many viewers Tenuto and nginx hold, with the same memory.

    benches/evening.py FOLDER [--audience distinct,one,zipf] [--viewers 300] [--tenuto target/release/tenuto]

Makes a film of 60 s at 5.33 Mb/s and offers it as many titles, each with bytes of its own: to Tenuto
in a store on one loop device, to nginx as the same HLS files in ext4 on another. The kernel holds
each device to --rate (blkio throttle). Each server gets --memory: Tenuto as its buffers, nginx
(sendfile) as a memory cgroup in which its page cache counts. `tenuto play` is the audience:

    distinct   a title for each viewer, none twice
    one        the same title for all
    zipf       a title of rank k with a probability proportional to 1/k

Tenuto refuses viewers, nginx admits everybody; what counts is how many play without a stall. Needs
root, nginx, ffmpeg, version 1 of the control groups memory and blkio, and 20 GB in FOLDER. Nothing
else is changed, and all started programs are stopped.
"""
import argparse, json, os, shutil, subprocess, sys
from serving import NGINX, Server, mirror

FILM = (
    "-f lavfi -i testsrc2=s=1280x720:r=25:d=60,noise=alls=20:allf=t -f lavfi -i sine=440:d=60:r=48000 "
    "-c:v libx264 -preset ultrafast -b:v 5200k -minrate 5200k -maxrate 5200k -bufsize 2600k "
    "-x264-params nal-hrd=cbr -g 50 -pix_fmt yuv420p -c:a aac -b:a 128k"
)
CGROUP = "/sys/fs/cgroup/{}/tenuto-evening"
SENDFILE = "open_file_cache max=10000 inactive=600s;", "sendfile on;"


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

    def __init__(self, device, rate, memory):
        self.groups = [CGROUP.format("blkio")] + ([CGROUP.format("memory")] if memory else [])
        for group in self.groups:
            os.makedirs(group, exist_ok=True)
        number = os.stat(device).st_rdev
        place = f"{os.major(number)}:{os.minor(number)}"
        write(self.groups[0] + "/blkio.throttle.read_bps_device", f"{place} {rate}")
        if memory:
            write(self.groups[1] + "/memory.limit_in_bytes", memory)

    def command(self, command):
        """`command`, started inside the groups."""
        joins = "; ".join(f"echo $$ > {group}/cgroup.procs" for group in self.groups)
        return ["sh", "-c", f'{joins}; exec "$@"', "sh", *command]

    def remove(self):
        for group in self.groups:
            os.rmdir(group)


def attach(args, name):
    """A loop device of this name; whether its file was there already."""
    image = os.path.join(args.folder, f"evening-{name}.img")
    known = os.path.exists(image)
    run("truncate", "-s", str(args.titles * 60_000_000 + (1 << 30)), image)
    return run("losetup", "--find", "--show", "--direct-io=on", image), known


def fill(args, store, files, mounted):
    """Puts the titles on both devices."""
    film = os.path.join(args.folder, "evening-film.mp4")
    run("ffmpeg", "-nostdin", "-v", "error", "-y", *FILM.split(" "), film)
    run(args.tenuto, "format", store, "--destroy")
    for number in range(args.titles):
        run(args.tenuto, "ingest", store, film, "--title", f"t{number:03}")
    run("mkfs.ext4", "-q", "-F", files)
    run("mount", files, mounted)
    # The first start measures the disk, which has to be as slow as it will be.
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


def tenuto(args, store, limits):
    command = [args.tenuto, "serve", store, "--listen", f"127.0.0.1:{args.port}", "--memory", str(args.memory)]
    return Server(limits.command(command), args.port, "/healthz")


def nginx(args, root, limits):
    cache, how = SENDFILE
    config = os.path.join(args.folder, "evening-nginx.conf")
    write(config, NGINX.format(run=args.folder, root=root, port=args.port, cache=cache, how=how, user="user root;"))
    return Server(limits.command(["nginx", "-p", args.folder, "-c", config]), args.port, "/ready")


def play(args, server, audience):
    urls = [f"{server.url}/t/t{number:03}/master.m3u8" for number in range(args.titles)]
    viewers = min(args.viewers, args.titles) if audience == "distinct" else args.viewers
    choice = "zipf:1.0" if audience == "zipf" else "in-turn"
    command = [args.tenuto, "play", *(urls[:1] if audience == "one" else urls), "--viewers", str(viewers)]
    command += ["--arrivals", "every:100ms", "--choice", choice, "--duration", f"{args.seconds}s", "--json"]
    played = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return json.loads(played.stdout)


def bytes_read(device):
    """What the device has read since it exists."""
    return int(open(f"/sys/block/{os.path.basename(device)}/stat").read().split()[2]) * 512


def measure(args, store, files, root):
    print(f"{'audience':9} {'server':7} offered admitted stalled worst-stall  start-up p50/p99     read")
    for audience in args.audience.split(","):
        for name, device in ("tenuto", store), ("nginx", files):
            write("/proc/sys/vm/drop_caches", 3)
            limits = Limits(device, args.rate, args.memory if name == "nginx" else None)
            server = tenuto(args, store, limits) if name == "tenuto" else nginx(args, root, limits)
            before = bytes_read(device)
            report = play(args, server, audience)
            read = bytes_read(device) - before
            server.stop()
            limits.remove()
            totals, start = report["totals"], report["startup_ms"]
            worst = max(viewer["longest_stall_ms"] or 0 for viewer in report["viewers"])
            print(
                f"{audience:9} {name:7} {totals['arrived']:7} {totals['admitted']:8} {totals['viewers_with_stalls']:7}"
                f" {worst / 1000:9.1f} s {start['p50'] / 1000:8.2f} /{start['p99'] / 1000:6.2f} s {read / 1e9:5.1f} GB"
                f"  {totals['refused_by'] or ''}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--audience", default="distinct,one,zipf")
    parser.add_argument("--titles", type=int, default=200)
    parser.add_argument("--viewers", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=55, help="duration of each run")
    parser.add_argument("--rate", type=int, default=100 << 20, help="bytes per second of the disk")
    parser.add_argument("--memory", type=int, default=512 << 20, help="bytes")
    parser.add_argument("--keep", action="store_true", help="leave the devices' files for the next run")
    parser.add_argument("--tenuto", default="target/release/tenuto")
    parser.add_argument("--port", type=int, default=8471)
    args = parser.parse_args()
    args.folder, args.tenuto = os.path.abspath(args.folder), os.path.abspath(args.tenuto)
    mounted = os.path.join(args.folder, "evening-files")
    os.makedirs(mounted, exist_ok=True)
    devices = {name: attach(args, name) for name in ("store", "files")}
    (store, _), (files, known) = devices["store"], devices["files"]
    try:
        if not known:
            fill(args, store, files, mounted)
        run("mount", files, mounted)
        measure(args, store, files, mounted)
    finally:
        if os.path.ismount(mounted):
            run("umount", mounted)
        for device in store, files:
            run("losetup", "--detach", device)
        for name in [] if args.keep else ["store.img", "files.img", "film.mp4", "nginx.conf"]:
            if os.path.exists(path := os.path.join(args.folder, f"evening-{name}")):
                os.remove(path)


main()
