#!/usr/bin/env python3
"""Paced players, recorders, removals and a scrub: a store beside file systems on one emulated disk.

    benches/house-filesystems.py FOLDER [--systems store,ext4:2560,xfs:2560,btrfs:2560,ext2:2560,ext4:128]
                                 [--tests paced,play,mixed,search] [--tenuto target/release/tenuto]

`tenuto disk emulate` makes a disk with the times of a model. Each system gets the same titles of one
constant rate in the same order, contiguous because they are written one after another: the store by
`tenuto ingest`, a file system as files. A number behind a file system is its read-ahead in KiB.

    paced   the largest number of players, each of a title of its own from its beginning, of which
            none is late; it is searched. The store admits or refuses, and is asked for all at once
    mixed   two players to a recorder, 9/10 of the players that the store admitted (--house), a title of
            those that nobody plays removed every four seconds, and a reader of everything (scrub)
    search  the largest mixed house in which nothing is late; for file systems
    play    the players over HTTP by `tenuto play`; for the store only

A player is the same for all: `read` of 256 KiB at a time in a thread. It begins to play when it has
two seconds, and then asks for each block two seconds before it is due; a block is late that is not
there when it is due. On the mount of the served store it first reserves the title's rate, and leaves
if it is refused. A recorder writes a block when it is due; it is late if that has not returned after
two seconds. Files are flushed every second (--sync 0: never), because a recording of a store survives
a power cut but for its last second. The scrub of files is a reader with the priority of idle; that of
the store is `tenuto check --scrub`.

Memory: --memory of the server's buffers, or a control group of this size with the players, and so
the page cache of files. For each run files are mounted anew, or the server is started anew. Needs
root, FUSE, loop devices, ffmpeg, and the programs that make the file systems; and in FOLDER the size
of the disk (titles x length x rate, and a quarter). No ageing (benches/ageing-filesystems.py), no
unpaced reading (`tenuto reproduce park-figures --emulated`), no crash, and no search of the store's
mixed house, which its admission limits. Ends with Ctrl-C; the disk and its file are then removed.
"""
import argparse, ctypes, errno, json, os, random, re, shutil, signal, subprocess, sys, threading, time
import urllib.request

BLOCK = 256 << 10
BUFFER = 2.0  # seconds that a player or a recorder holds
DEAD_BAND = 0.01  # as `tenuto play`
ARRIVAL = 0.1  # seconds from one player to the next
ADMISSION = 20.0  # seconds for which a refused player asks again
REMOVAL = 4.0  # seconds from one removal to the next
FPS = 25
GROUP = "tenuto-house"
MAKE = {
    "ext2": ["mkfs.ext2", "-q", "-F", "-m", "0"],
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
IOPRIO_SET, IDLE = 251, 3 << 13  # x86-64


def run(*command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            out = process.communicate()[0]
        finally:
            if process.poll() is None:
                process.terminate()
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return out.strip()


def say(words):
    print(time.strftime("%H:%M:%S"), words, flush=True)


def write(path, text):
    with open(path, "w") as file:
        file.write(str(text))


# What runs in the control group: players, recorders, removals and the scrub of files.


class Worker(threading.Thread):
    """A player or a recorder."""

    def __init__(self, load, kind, path, delay):
        super().__init__(daemon=True)
        self.load, self.kind, self.path, self.delay = load, kind, path, delay
        self.period = BLOCK / load.rate
        self.refused, self.error, self.startup, self.first = False, None, None, None
        self.done = self.late = 0
        self.longest = 0.0  # lateness

    def run(self):
        self.load.sleep_until(self.load.begin + self.delay)
        try:
            (self.record if self.kind == "recorder" else self.play)()
        except OSError as error:
            self.error = f"{self.path}: {error}"

    def count(self, due):
        self.done += 1
        lateness = time.monotonic() - due
        self.longest = max(self.longest, lateness)
        if lateness > DEAD_BAND:
            self.is_late(1)

    def is_late(self, blocks):
        self.late += blocks
        if self.load.first_late:
            self.load.stop.set()

    def close(self):
        """Counts what was due and has not come."""
        if self.refused or self.load.stop.is_set():
            return
        now = self.load.end
        if self.first is None:
            self.is_late(1)
            return
        due = int((now - self.first - DEAD_BAND) / self.period) + 1
        if due > self.done:
            self.is_late(due - self.done)
            self.longest = max(self.longest, now - self.first - self.done * self.period)

    def play(self):
        file = os.open(self.path, os.O_RDONLY)
        try:
            if self.load.reserve and not self.admitted():
                self.refused = True
                return
            memory, begun, block = bytearray(BLOCK), time.monotonic(), 0
            while self.load.goes_on():
                if self.first is not None and not self.load.sleep_until(self.first + block * self.period - BUFFER):
                    return
                if not os.preadv(file, [memory], block * BLOCK):
                    raise OSError(errno.ENODATA, "the title is too short")
                block += 1
                if self.first is not None:
                    self.count(self.first + (block - 1) * self.period)
                elif block * self.period >= BUFFER:
                    self.first = time.monotonic()
                    self.startup, self.done = self.first - begun, block
        finally:
            os.close(file)

    def admitted(self):
        until = time.monotonic() + ADMISSION
        while time.monotonic() < until and self.load.goes_on():
            try:
                os.setxattr(self.path, "user.tenuto.rate", b"title")
                return True
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
            time.sleep(0.5)
        return False

    def record(self):
        recorder = None
        if self.load.recorder:
            recorder, file = self.recorder_of_store()
            if file is None:
                self.refused = True
                return
        else:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        begun, block, flushed = time.monotonic(), 0, time.monotonic()
        try:
            while self.load.goes_on():
                if self.first is not None and not self.load.sleep_until(self.first + block * self.period - BUFFER):
                    break
                data = self.load.film[block * BLOCK % self.load.length :][:BLOCK]
                while data:
                    data = data[os.write(file, data) :]
                block += 1
                if self.first is None:
                    self.startup, self.first = time.monotonic() - begun, time.monotonic() + BUFFER
                self.count(self.first + (block - 1) * self.period)
                if self.load.sync and time.monotonic() - flushed > self.load.sync and not recorder:
                    os.fdatasync(file)
                    flushed = time.monotonic()
        except BrokenPipeError:
            # A recorder has its pipe before it is refused.
            self.refused = recorder.wait() == 3
            self.error = None if self.refused else f"{self.path}: the recording has ended early"
        finally:
            os.close(file)
            if recorder:
                recorder.wait()

    def recorder_of_store(self):
        """`tenuto record` with a pipe that it reads; no pipe if it was refused."""
        pipe = os.path.join(self.load.folder, f"house-{self.path}.pipe")
        os.mkfifo(pipe)
        command = [{"TITLE": self.path, "PIPE": pipe}.get(word, word) for word in self.load.recorder]
        recorder, file = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True), None
        while file is None and recorder.poll() is None:
            try:
                file = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                os.set_blocking(file, True)
            except OSError:
                time.sleep(0.02)
        os.unlink(pipe)
        if file is None and recorder.returncode != 3:
            self.error = f"{self.path}: exit code {recorder.returncode}"
        return recorder, file


class Load:
    def __init__(self, spec):
        self.__dict__.update(spec)
        self.chance, self.stop = random.Random(self.seed), threading.Event()
        self.film = memoryview(open(self.film, "rb").read())
        self.length = len(self.film) // BLOCK * BLOCK
        self.begin = time.monotonic() + 0.2
        kinds = [("player", path) for path in self.players] + [("recorder", path) for path in self.recorders]
        self.chance.shuffle(kinds)
        self.end = self.begin + len(kinds) * ARRIVAL + self.seconds
        self.workers = [Worker(self, *kind, number * ARRIVAL) for number, kind in enumerate(kinds)]
        self.removed, self.longest_removal, self.scrubbed = 0, 0.0, 0

    def goes_on(self):
        return not self.stop.is_set() and time.monotonic() < self.end

    def sleep_until(self, when):
        """False if the run has ended before."""
        while (left := min(when, self.end) - time.monotonic()) > 0 and not self.stop.is_set():
            self.stop.wait(left)
        return self.goes_on()

    def remove(self):
        for number, path in enumerate(self.removals):
            if not self.sleep_until(self.begin + (number + 1) * REMOVAL):
                return
            before = time.monotonic()
            os.unlink(path)
            self.removed += 1
            self.longest_removal = max(self.longest_removal, time.monotonic() - before)

    def read_all(self):
        ctypes.CDLL(None).syscall(IOPRIO_SET, 1, 0, IDLE)
        memory = bytearray(1 << 20)
        for path in self.scrub:
            try:
                with open(path, "rb", buffering=0) as file:
                    while self.goes_on() and (read := file.readinto(memory)):
                        self.scrubbed += read
            except FileNotFoundError:
                pass

    def run(self):
        others = [threading.Thread(target=work, daemon=True) for work in (self.remove, self.read_all)]
        for thread in [*self.workers, *others]:
            thread.start()
        self.sleep_until(self.end)
        for worker in self.workers:
            worker.close()
        deadline = time.monotonic() + 60
        for thread in [*self.workers, *others]:
            thread.join(max(0.1, deadline - time.monotonic()))
        answer = {"removed": self.removed, "longest_removal": self.longest_removal, "scrubbed": self.scrubbed}
        for kind in ("player", "recorder"):
            those = [worker for worker in self.workers if worker.kind == kind]
            there = [worker for worker in those if not worker.refused]
            answer[kind] = {
                "asked": len(those),
                "admitted": len(there),
                "blocks": sum(worker.done for worker in there),
                "late": sum(worker.late for worker in there),
                "late_workers": sum(worker.late > 0 for worker in there),
                "longest": max([worker.longest for worker in there], default=0),
                "startup": max([worker.startup or 0 for worker in there], default=0),
                "errors": [worker.error for worker in those if worker.error],
            }
        return answer


# What prepares the disk and the systems on it.


class Group:
    """A control group for the memory, of version 1 or 2."""

    def __init__(self, limit):
        v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.path = f"/sys/fs/cgroup/{'' if v2 else 'memory/'}{GROUP}-{os.getpid()}"
        os.makedirs(self.path)
        write(f"{self.path}/{'memory.max' if v2 else 'memory.limit_in_bytes'}", limit)

    def command(self, command):
        return ["sh", "-c", f'echo $$ > {self.path}/cgroup.procs; exec "$@"', "sh", *command]

    def remove(self):
        for _ in range(50):
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.1)


class Disk:
    def __init__(self, args):
        self.args, self.image = args, os.path.join(args.folder, "house.img")
        self.known = os.path.exists(self.image)
        command = [args.tenuto, "disk", "emulate", args.disk, "--backing", self.image, "--attach", "--no-delay"]
        command += [] if self.known else ["--size", str(args.size)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        line = next((line for line in self.process.stdout if line.startswith("block device")), None)
        self.device = line.split()[-1] if line else sys.exit(f"{' '.join(command)}: no block device")
        write(f"/sys/block/{os.path.basename(self.device)}/queue/scheduler", args.scheduler)

    def delay(self, on):
        run(self.args.tenuto, "disk", "stats", self.image, "--delay", "on" if on else "off")

    def reset(self):
        write(f"{self.image}.emulated/control", "reset")

    def stats(self):
        return json.loads(run(self.args.tenuto, "disk", "stats", self.image, "--json"))

    def detach(self):
        for patience in (120, 30):
            self.process.terminate()
            try:
                return self.process.wait(patience)
            except subprocess.TimeoutExpired:
                pass


class Files:
    """Titles as files in a file system."""

    reserve, recorder = False, None

    def __init__(self, args, disk, name):
        self.args, self.disk, self.name = args, disk, name
        self.system, _, self.read_ahead = name.partition(":")
        self.directory = os.path.join(args.folder, "house-files")
        os.makedirs(self.directory, exist_ok=True)
        if not disk.known:
            run(*MAKE[self.system], disk.device)
            run("mount", "-o", "noatime", disk.device, self.directory)
            for number in range(args.titles):
                shutil.copyfile(args.film, os.path.join(self.directory, f"t{number:03}.mov"))
            run("sync", "-f", self.directory)
            run("umount", self.directory)

    def start(self, group):
        if self.read_ahead:
            write(f"/sys/block/{os.path.basename(self.disk.device)}/queue/read_ahead_kb", self.read_ahead)
        run("mount", "-o", "noatime", self.disk.device, self.directory)
        return group.command

    def stop(self):
        if os.path.ismount(self.directory):
            # What is written at the end is not measured.
            self.disk.delay(False)
            run("umount", self.directory)
            self.disk.delay(True)
        return {}

    def new(self, number):
        return os.path.join(self.directory, f"r{self.args.seed}-{number:03}.mkv")

    def scrub(self, files):
        return files

    def remove(self):
        self.stop()
        os.rmdir(self.directory)


class Store:
    """Titles in a store, as files of the mount that its server makes."""

    reserve = True

    def __init__(self, args, disk, name):
        self.args, self.disk, self.name, self.server, self.scrubber = args, disk, name, None, None
        self.mounts = os.path.join(args.folder, "house-mount")
        os.makedirs(self.mounts, exist_ok=True)
        self.directory = os.path.join(self.mounts, os.path.basename(disk.device))
        if not disk.known:
            run(args.tenuto, "format", disk.device, "--destroy")
            for number in range(args.titles):
                run(args.tenuto, "ingest", disk.device, args.film, "--title", f"t{number:03}")
        disk.delay(True)
        run(args.tenuto, "calibrate", disk.device, "--time", args.calibrate)
        self.url = f"http://127.0.0.1:{args.port}"
        self.recorder = [args.tenuto, "record", disk.device, "TITLE", "PIPE"]
        self.kept = ["--rate", f"{int(args.rate * 1.02)}bps"]

    def start(self, group):
        command = [self.args.tenuto, "serve", self.disk.device, "--listen", f"127.0.0.1:{self.args.port}"]
        command += ["--memory", str(self.args.memory), "--mount", self.mounts, "--grace", "2s"]
        command += self.args.serve.split()
        log = open(os.path.join(self.args.folder, "house-serve.log"), "a")
        self.server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        for _ in range(600):
            if os.path.ismount(self.directory) or self.server.poll() is not None:
                break
            time.sleep(0.1)
        if not os.path.ismount(self.directory):
            sys.exit("the server does not mount its store:\n" + open(log.name).read()[-2000:])
        return lambda load: load

    def stop(self):
        if self.scrubber:
            self.scrubber.terminate()
            self.scrubber.wait()
            self.scrubber = None
        numbers = {}
        if self.server and self.server.poll() is None:
            text = urllib.request.urlopen(self.url + "/metrics").read().decode()
            for name, value in re.findall(r"^tenuto_(\w+)(?:{[^}]*})? (\S+)$", text, re.M):
                numbers[name] = numbers.get(name, 0) + float(value)
            self.server.terminate()
            self.server.wait()
        self.server = None
        return {name: numbers.get(name) for name in METRICS}

    def new(self, number):
        return f"r{self.args.seed}-{number:03}"

    def scrub(self, files):
        self.scrubber = subprocess.Popen([self.args.tenuto, "check", self.disk.device, "--scrub"],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        return []

    def remove(self):
        self.stop()
        os.rmdir(self.directory) if os.path.isdir(self.directory) else None
        os.rmdir(self.mounts)


METRICS = ["deadlines_met_total", "deadline_misses_total", "guarantee_violations_total",
           "mount_reservations_refused_total", "mount_unreserved_bytes_total", "disk_slowdown_ratio"]


class House:
    """Runs of one system."""

    def __init__(self, args, disk, system):
        self.args, self.disk, self.system, self.runs = args, disk, system, 0

    def run(self, players, recorders=0, first_late=False, works=False, kept=True):
        """A run with so many players and recorders; `works` adds removals and the scrub."""
        args, system = self.args, self.system
        self.runs += 1
        args.seed += 1
        group = Group(args.memory)
        load = None
        try:
            inside = system.start(group)
            names = sorted(os.listdir(system.directory))
            titles = [os.path.join(system.directory, name) for name in names if name.startswith("t")]
            played = titles[:]
            random.Random(args.seed).shuffle(played)
            if system.reserve:
                # A part of the titles may have been removed by an earlier run.
                players = min(players, len(played))
            played = played[:players]
            others = [os.path.join(system.directory, n) for n in names if n[0] == "r" and "growing" not in n]
            others += [title for title in titles if title not in played]
            spec = {
                "rate": args.rate / 8, "seconds": args.seconds, "seed": args.seed, "players": played,
                "recorders": [system.new(number) for number in range(recorders)],
                "recorder": system.recorder and system.recorder + (system.kept if kept else []),
                "removals": others if works else [], "scrub": [], "first_late": first_late, "film": args.recorded,
                "reserve": system.reserve, "sync": args.sync, "folder": args.folder,
            }
            self.disk.reset()
            if works:
                spec["scrub"] = system.scrub([t for t in titles])
            load = subprocess.Popen(inside([sys.executable, os.path.abspath(__file__), "--load"]), text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
            out, _ = load.communicate(json.dumps(spec))
            answer = json.loads(out)
            stats = self.disk.stats()
            answer["server"] = system.stop()
        finally:
            if load and load.poll() is None:
                load.kill()
                load.wait()
            system.stop()
            group.remove()
        self.tell(answer, stats, works)
        return answer

    def tell(self, answer, stats, works):
        words = [f"{self.system.name:10}"]
        for kind, verb in (("player", "read"), ("recorder", "written")):
            who = answer[kind]
            if who["asked"]:
                words.append(
                    f"{who['admitted']} of {who['asked']} {kind}s, {who['late']} of {who['blocks']} blocks late "
                    f"({who['late_workers']} {kind}s, up to {max(0, who['longest']):.2f} s), start-up {who['startup']:.1f} s;")
            for error in who["errors"][:2]:
                words.append(f"[{error}]")
        if works:
            words.append(f"{answer['removed']} removed, up to {answer['longest_removal']:.2f} s; scrub {answer['scrubbed'] / 1e6:.0f} MB;")
        words.append(f"disk: {stats['read_bytes'] / 1e6 / stats['elapsed']:.0f} MB/s read, "
                     f"{stats['written_bytes'] / 1e6 / stats['elapsed']:.0f} written, busy {100 * stats['busy'] / stats['elapsed']:.0f} %, "
                     f"its own delay p99 {1000 * stats['late']['p99']:.1f} ms; load {os.getloadavg()[0]:.1f}")
        say(" ".join(words))
        if answer["server"]:
            say("    server: " + ", ".join(f"{name} {value:g}" for name, value in answer["server"].items() if value is not None))


def nothing_late(answer):
    return all(not answer[kind]["late"] and not answer[kind]["errors"] for kind in ("player", "recorder"))


def search(held, first, most, step):
    """The largest number that is held, to within `step`, and the smallest that is not."""
    low, high, number = 0, most + 1, min(first, most)
    while high - low > step:
        low, high = (number, high) if held(number) else (low, number)
        number = (low + high) // 2
    return low, high


def measure(args, disk, name, known):
    system = (Store if name == "store" else Files)(args, disk, name)
    try:
        disk.delay(True)
        say(f"{name}: {args.titles} titles are there")
        house, tests = House(args, disk, system), args.tests.split(",")
        if "paced" in tests:
            if name == "store":
                for _ in range(args.rounds):
                    known.setdefault("admitted", []).append(house.run(args.titles)["player"]["admitted"])
                known["players"] = min(known["admitted"])
                say(f"{name}: {known['admitted']} players admitted")
            else:
                def held(number):
                    return all(nothing_late(house.run(number, first_late=True)) for _ in range(args.rounds))
                low, high = search(held, args.first, args.titles, args.step)
                say(f"{name}: {low} players without a late block, {high} not")
        if "play" in tests and name == "store":
            play(args, house)
        whole = int(0.9 * (args.house or known.get("players", 0)))
        if "mixed" in tests:
            house.run(whole - whole // 3, whole // 3, works=True)
            if name == "store":
                say("store: the same without a rate for recorders")
                house.run(whole - whole // 3, whole // 3, works=True, kept=False)
        if "search" in tests and name != "store":
            def held(number):
                return nothing_late(house.run(number - number // 3, number // 3, first_late=True, works=True))
            low, high = search(held, whole * 2 // 3, args.titles, args.step)
            say(f"{name}: {low} in a mixed house without a late block, {high} not")
    finally:
        system.remove()


def play(args, house):
    group = Group(args.memory)
    try:
        house.system.start(group)
        viewers = args.titles
        urls = [f"{house.system.url}/t/t{number:03}/master.m3u8" for number in range(viewers)]
        seconds = int(viewers * ARRIVAL + args.seconds)
        command = [args.tenuto, "play", *urls, "--viewers", str(viewers), "--arrivals", f"every:{int(ARRIVAL * 1000)}ms"]
        command += ["--buffer", "10s", "--wait", "20s", "--duration", f"{seconds}s", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        report = json.loads(done.stdout)
        totals, start = report["totals"], report["startup_ms"]
        say(f"store over HTTP: {totals['admitted']} of {viewers} admitted, {totals['viewers_with_stalls']} with a stall, "
              f"{totals['late_ldus']} of {totals['ldus']} frames late, start-up up to {start['max'] / 1000:.1f} s, "
              f"{totals['bits_per_s'] / 1e6:.0f} Mb/s; refused for {totals['refused_by']}; {house.system.stop()}")
    finally:
        house.system.stop()
        group.remove()


def make_film(args):
    """Motion JPEG in frames of one size, and the same in a container that is recorded from a pipe."""
    picture, frames = (os.path.join(args.folder, name) for name in ("house.jpg", "house.mjpeg"))
    args.film, args.recorded = (os.path.join(args.folder, name) for name in ("house.mov", "house.mkv"))
    ffmpeg = ["ffmpeg", "-nostdin", "-v", "error", "-y"]
    run(*ffmpeg, "-f", "lavfi", "-i", "testsrc2=s=640x360", "-frames:v", "1", "-q:v", "8", picture)
    jpeg, size = open(picture, "rb").read(), args.rate // 8 // FPS
    fill, comments = size - len(jpeg), b""
    while fill > 0:
        part = min(fill, 60000)
        part = part if fill - part == 0 or fill - part >= 4 else part - 4
        comments += b"\xff\xfe" + (part - 2).to_bytes(2, "big") + bytes(part - 4)
        fill -= part
    frame = jpeg[:2] + comments + jpeg[2:]
    assert len(frame) == size, "the picture does not fit into a frame"
    with open(frames, "wb") as file:
        for _ in range(args.length * FPS):
            file.write(frame)
    for film in (args.film, args.recorded):
        run(*ffmpeg, "-framerate", str(FPS), "-f", "mjpeg", "-i", frames, "-c", "copy", film)
    for name in (picture, frames):
        os.remove(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    files = ",".join(f"{system}:{size}" for size in (2560, 128) for system in MAKE)
    parser.add_argument("--systems", default=f"store,{files}")
    parser.add_argument("--tests", default="paced,mixed,search,play")
    parser.add_argument("--disk", default="hdd-20tb", help="the model")
    parser.add_argument("--titles", type=int, default=96)
    parser.add_argument("--length", type=int, default=80, help="seconds of a title")
    parser.add_argument("--rate", type=int, default=16_000_000, help="bits per second of a title")
    parser.add_argument("--seconds", type=int, default=60, help="duration of a run after the last arrival")
    parser.add_argument("--memory", type=int, default=4 << 30, help="bytes of the control group")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each number")
    parser.add_argument("--first", type=int, default=48, help="players of a search's first run")
    parser.add_argument("--step", type=int, default=4, help="a search ends when it is so close")
    parser.add_argument("--house", type=int, default=0, help="players that the disk holds, if paced does not run")
    parser.add_argument("--sync", type=float, default=1, help="seconds between flushes of a recorder's file")
    parser.add_argument("--scheduler", default="mq-deadline", help="of the block device")
    parser.add_argument("--calibrate", default="20s", help="`--time` of `tenuto calibrate`; it takes longer")
    parser.add_argument("--serve", default="", help="more options of `tenuto serve`")
    parser.add_argument("--keep", action="store_true", help="leave the disk in FOLDER, for a later run of the same system")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=8472)
    parser.add_argument("--tenuto", default="target/release/tenuto")
    args = parser.parse_args()
    args.folder, args.tenuto = os.path.abspath(args.folder), os.path.abspath(args.tenuto)
    args.size = args.titles * args.length * args.rate // 8 * 5 // 4 // 4096 * 4096
    os.makedirs(args.folder, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    if len(args.systems.split(",")) > 1 and (args.keep or os.path.exists(os.path.join(args.folder, "house.img"))):
        sys.exit("--keep and a disk that was kept are for one system")
    try:
        make_film(args)
        known = {}
        for name in args.systems.split(","):
            disk = Disk(args)
            try:
                measure(args, disk, name, known)
            finally:
                disk.detach()
                if not args.keep:
                    os.remove(disk.image)
    except KeyboardInterrupt:
        sys.exit("interrupted")
    finally:
        for name in ["house.mov", "house.mkv", "house-serve.log", *([] if args.keep else ["house.img"])]:
            if os.path.exists(path := os.path.join(args.folder, name)):
                os.remove(path)


if __name__ == "__main__":
    if sys.argv[1:] == ["--load"]:
        print(json.dumps(Load(json.load(sys.stdin)).run()))
    else:
        main()
