#!/usr/bin/env python3
"""Many cameras into one server: what recordings take of a machine.

    benches/cameras.py [--cameras 100] [--seconds 40] [--rate 4] [--program tenuto] [--dir DIR]
                       [SERVE OPTION ...]

Needs ffmpeg with libx264, and room for what is recorded. Each camera is a named pipe, into which a
transport stream of --rate Mb/s is written at its pace, and a `tenuto record --rate`. Options that are
not known go to `tenuto serve`, for instance `--as-disk ssd-sata`. Prints, every ten seconds, what the
server takes, and at the end what became of the recordings. Nothing is measured of the disk.
"""

import argparse, fcntl, json, os, subprocess, tempfile, time, urllib.request

SET_PIPE_SIZE = 1031
PIPE = 1 << 20
PORT = 18080


def stream(folder, megabits):
    """Twenty seconds of pictures and sound at a constant rate."""
    video = int(megabits * 1000 * 0.94) - 100
    words = (
        "ffmpeg -nostdin -v error -y -f lavfi -i testsrc2=s=1280x720:r=25:d=20,noise=alls=30 -f lavfi"
        f" -i sine=440:d=20 -c:v libx264 -preset ultrafast -g 50 -b:v {video}k -minrate {video}k"
        f" -maxrate {video}k -bufsize {video // 2}k -c:a aac -b:a 96k -f mpegts"
        f" -muxrate {megabits}M camera.ts"
    )
    subprocess.run(words.split(), cwd=folder, check=True)
    with open(os.path.join(folder, "camera.ts"), "rb") as file:
        return file.read()


def taken(process):
    """What a process takes: memory, threads, descriptors, processor time, children."""
    with open(f"/proc/{process}/status") as file:
        status = dict(line.split(":", 1) for line in file)
    with open(f"/proc/{process}/stat") as file:
        times = file.read().rsplit(") ", 1)[1].split()[11:13]
    seconds = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    files = len(os.listdir(f"/proc/{process}/fd"))
    children = 0
    for task in os.listdir(f"/proc/{process}/task"):
        try:
            with open(f"/proc/{process}/task/{task}/children") as file:
                children += len(file.read().split())
        except FileNotFoundError:  # It has ended.
            pass
    return (
        f"{status['VmRSS'].strip()}, {status['Threads'].strip()} threads, {files} descriptors,"
        f" {seconds:.1f} s of processor time, {children} processes"
    )


def kept():
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics") as response:
        lines = response.read().decode().splitlines()
    return ", ".join(line for line in lines if line.startswith("tenuto_disk_recording"))


def feed(pipes, data, rate, seconds, server):
    """Writes the stream into all pipes at its pace."""
    sent, begun, told = [0] * len(pipes), time.time(), 10
    while (now := time.time() - begun) < seconds:
        wanted = int(now * rate)
        for number, pipe in enumerate(pipes):
            while sent[number] < wanted:
                at = sent[number] % len(data)
                try:
                    piece = data[at : at + min(1 << 16, wanted - sent[number])]
                    sent[number] += os.write(pipe, piece)
                except BlockingIOError:
                    break
        if now > told:
            told += 10
            print(f"{now:.0f} s: {taken(server)}; {kept()}", flush=True)
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cameras", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--rate", type=int, default=4)
    parser.add_argument("--program", default="tenuto")
    parser.add_argument("--dir")
    options, serving = parser.parse_known_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        data = stream(folder, options.rate)
        in_bytes = options.rate * 125_000
        # Recordings hold more than they need while they go on.
        size = int(options.cameras * (options.seconds * in_bytes * 2 + (32 << 20))) + (1 << 30)
        store = os.path.join(folder, "cameras.store")
        program = [options.program]
        quiet = {"stdout": subprocess.DEVNULL}
        subprocess.run(program + ["format", store, "--size", str(size)], check=True, **quiet)
        listen = ["serve", store, "--listen", f"127.0.0.1:{PORT}"]
        server = subprocess.Popen(program + listen + serving, **quiet)
        time.sleep(5)
        names = [os.path.join(folder, f"camera{number}") for number in range(options.cameras)]
        for name in names:
            os.mkfifo(name)
        # Opened for reading, too: otherwise opening one waits for its recording.
        pipes = [os.open(name, os.O_RDWR | os.O_NONBLOCK) for name in names]
        for pipe in pipes:
            fcntl.fcntl(pipe, SET_PIPE_SIZE, PIPE)
        words = ["--rate", f"{options.rate}Mbps", "--silence", "60s", "--json"]
        record = [
            program + ["record", store, os.path.basename(name), name] + words for name in names
        ]
        recordings = [subprocess.Popen(words, stdout=subprocess.PIPE) for words in record]
        feed(pipes, data, in_bytes, options.seconds, server.pid)
        for pipe in pipes:
            os.close(pipe)
        reports = [recording.communicate()[0] for recording in recordings]
        codes = [recording.returncode for recording in recordings]
        titles = [json.loads(report)["title"] for report in reports if report.strip()]
        lengths = [title["duration"] for title in titles]
        errors = {str(json.loads(report)["error"]) for report in reports if report.strip()}
        print(f"exit codes: { {code: codes.count(code) for code in set(codes)} }, errors: {errors}")
        print(f"{len(titles)} titles, {min(lengths, default=0):.1f} s to {max(lengths, default=0):.1f} s")
        server.terminate()
        server.wait()


main()
