#!/usr/bin/env python3
"""Months of adding and removing on ext4 and XFS: extents of files beside those of a store.

    benches/ageing-filesystems.py [--size 4GiB] [--full 90] [--months 6] [--seed 1] [DIR]

Needs root, loop devices, e2fsprogs and xfsprogs. DIR (/dev/shm) takes an image of that size.

The titles, their arrivals and their removals are drawn as by `tenuto simulate ageing`, 256 times
smaller: a block of 4 KiB is to the file system what a chunk of 1 MiB is to a store, and 4 GiB stand
for 1 TiB. A title is one file. Clips, programmes and films are written at once; recordings grow
side by side, each by 30 s of media at a time, which are then flushed, as the kernel does by itself
after 30 s. Compare with `tenuto simulate ageing --size 1TiB`, whose extents are those of the picture.
"""

import argparse, heapq, os, random, re, subprocess, tempfile

SCALE = 256
MONTH = 30 * 24 * 3600
RATES = [2e6, 5e6, 8e6, 15e6]
SOUND = 192e3
FLUSHED = 30  # seconds of media
DATA = bytes(1 << 20)


def draw(chance):
    kind = chance.random()
    if kind < 0.55:
        minutes, recorded = (0.5, 5), False
    elif kind < 0.78:
        minutes, recorded = (20, 60), False
    elif kind < 0.85:
        minutes, recorded = (80, 120), False
    else:
        minutes, recorded = (10, 180), True
    rate = (chance.choice(RATES) + SOUND) / 8 / SCALE
    return rate, 60 * chance.uniform(*minutes), recorded


def append(file, size):
    while size > 0:
        size -= os.write(file, DATA[: min(size, len(DATA))])


class Library:
    def __init__(self, directory, full, seed):
        self.directory, self.full, self.chance = directory, full, random.Random(seed)
        self.titles, self.growing, self.failed, self.came = [], [], 0, 0
        self.now = self.next = 0.0
        sample = random.Random(seed)
        mean = sum(rate * length for rate, length, _ in (draw(sample) for _ in range(10000))) / 1e4
        stat = os.statvfs(directory)
        self.most = stat.f_blocks * stat.f_frsize * full
        self.gap = MONTH * mean / self.most

    def used(self):
        stat = os.statvfs(self.directory)
        return (stat.f_blocks - stat.f_bfree) * stat.f_frsize

    def make_room(self, size):
        while self.titles and self.used() + size > self.most:
            os.unlink(self.titles.pop(self.chance.randrange(len(self.titles))))

    def file(self):
        self.came += 1
        path = os.path.join(self.directory, f"{self.came}.mp4")
        return path, os.open(path, os.O_WRONLY | os.O_CREAT)

    def write(self, rate, length):
        path, file = self.file()
        try:
            append(file, int(rate * length))
            os.fdatasync(file)
            self.titles.append(path)
        except OSError:
            self.failed += 1
            os.unlink(path)
        os.close(file)

    def fill(self):
        while True:
            rate, length, _ = draw(self.chance)
            if self.used() + rate * length > self.most:
                return
            self.write(rate, length)

    def arrive(self):
        rate, length, recorded = draw(self.chance)
        if recorded:
            path, file = self.file()
            heapq.heappush(self.growing, (self.now + FLUSHED, path, file, rate, length))
            return
        self.make_room(rate * length)
        self.write(rate, length)

    def record(self):
        at, path, file, rate, left = heapq.heappop(self.growing)
        size = int(rate * min(left, FLUSHED))
        self.make_room(size)
        try:
            append(file, size)
            os.fdatasync(file)
        except OSError:
            self.failed += 1
            left = 0
        if left > FLUSHED:
            heapq.heappush(self.growing, (at + FLUSHED, path, file, rate, left - FLUSHED))
            return
        os.close(file)
        self.titles.append(path)

    def pass_until(self, end):
        while True:
            step = self.growing[0][0] if self.growing else float("inf")
            self.now = min(step, self.next)
            if self.now > end:
                return
            if step <= self.next:
                self.record()
            else:
                self.next += self.chance.expovariate(1 / self.gap)
                self.arrive()

    def extents(self):
        os.sync()
        out = subprocess.run(["filefrag", *self.titles], capture_output=True, text=True, check=True)
        return sorted(int(n) for n in re.findall(r": (\d+) extents? found", out.stdout))


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def age(system, make, args):
    with tempfile.TemporaryDirectory(dir=args.dir) as work:
        image, directory = os.path.join(work, "image"), os.path.join(work, "mount")
        os.mkdir(directory)
        run("truncate", "-s", args.size.replace("iB", ""), image)
        run(*make, image)
        run("mount", "-o", "loop,noatime", image, directory)
        try:
            library = Library(directory, args.full / 100, args.seed)
            library.fill()
            for month in range(args.months + 1):
                library.pass_until(MONTH * month)
                extents = library.extents()
                count = len(extents)
                print(
                    f"{system:5} month {month}: {count} titles, "
                    f"{library.used() / library.most * args.full:.1f} % used, extents "
                    f"mean {sum(extents) / count:.2f}, p99 {extents[count * 99 // 100]}, "
                    f"max {extents[-1]}, in one {extents.count(1) / count:.3f}, "
                    f"failed {library.failed}",
                    flush=True,
                )
            for _, _, file, _, _ in library.growing:
                os.close(file)
        finally:
            run("umount", directory)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("dir", nargs="?", default="/dev/shm")
parser.add_argument("--size", default="4GiB")
parser.add_argument("--full", type=float, default=90)
parser.add_argument("--months", type=int, default=6)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
age("ext4", ["mkfs.ext4", "-q", "-m", "0"], options)
age("xfs", ["mkfs.xfs", "-q"], options)
