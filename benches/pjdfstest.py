#!/usr/bin/env python3
"""pjdfstest on a mounted store: which assertions pass, and why the others do not.

    sudo benches/pjdfstest.py PJDFSTEST [--program tenuto] [--size 3GiB] [--jobs 4] [--dir DIR]
                              [--all] [TEST ...]

PJDFSTEST is the directory of https://github.com/pjd/pjdfstest, built there (`autoreconf -ifs`,
`./configure`, `make pjdfstest`). Needs root, FUSE, openssl, and room for the store, which one test fills
with 2 GiB. TEST is the beginning of a test's name, such as `rename/` or `open/0`; without one all run.

Assertions that fail are counted by what a store of media has not: links and special files, owners and
rights, times that programs set, paths of more than 255 bytes. One that fails behind such an assertion, on
the same file, has found no file: it counts there, too. What fails otherwise is printed, and makes the
program fail. --all prints each assertion that fails.
"""

import argparse, collections, concurrent.futures, os, re, signal, subprocess, sys, tempfile

# The most seconds of one test.
LONGEST = 900
# The most bytes of a path on a mount.
PATH = 255

# What a store has not, by the operation that was tried.
CAUSES = [
    ("links, special files", re.compile(r"(?:^|: )(?:mkfifo|mknod|bind|connect|symlink|link|linkat) ")),
    (
        "owners, rights",
        re.compile(r"(?:^|: )(?:l|f)?ch(?:mod|own)|fchownat|(?:^| )-[ug] \d|[, ](?:mode|uid|gid)\b"),
    ),
    ("times that are set", re.compile(r"utimensat|[, _](?:atime|mtime|ctime|birthtime)(?:_ns)?\b")),
]
LONG = "long paths"
NAMES = [name for name, _ in CAUSES] + [LONG]
# The names that tests give to files.
FILE = re.compile(r"pjdfstest_[0-9a-f]+|(?<![0-9a-f])[0-9a-f]{255}(?![0-9a-f])")


def cause_of(tried, blamed):
    """Why an assertion does not apply; None if it does."""
    for name, pattern in CAUSES:
        if pattern.search(tried):
            return name
    if any(len(word) > PATH and "/" in word for word in tried.split()):
        return LONG
    return next((blamed[file] for file in FILE.findall(tried) if file in blamed), None)


def run(test, args, at):
    """The assertions of one test: how many passed, how many failed by cause, what failed otherwise."""
    name = os.path.relpath(test, os.path.join(args.pjdfstest, "tests"))
    counts, failed, blamed, last = collections.Counter(), [], {}, None
    try:
        words = ["sh", test]
        said = subprocess.run(
            words, cwd=at, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LONGEST
        ).stdout
    except subprocess.TimeoutExpired:
        return name, counts, [(None, "it did not end")]
    plan = re.search(r"^1\.\.(\d+)", said, re.M)
    lines = [line for line in said.splitlines() if re.match(r"(?:not )?ok\b", line)]
    for line in lines:
        if line.startswith("ok") or "# TODO" in line:
            counts["passed"] += 1
            continue
        found = re.search(r"tried '(.*)', expected (.*), got (.*)$", line)
        tried = found.group(1) if found else ""
        # A comparison in the test itself, of what was found before.
        cause = cause_of(tried, blamed) if found else cause_of(line, {}) or last
        if cause:
            counts[cause] += 1
            last = cause
            blamed.update((file, blamed.get(file, cause)) for file in FILE.findall(tried))
        else:
            counts["other"] += 1
        failed.append((cause, line))
    missing = int(plan.group(1)) - len(lines) if plan else 1
    if missing > 0:
        # A test that ends early says why in front of the end.
        cause = cause_of(said, {}) if "Bail out!" in said else None
        failed.append((cause, f"{missing} assertions were not made"))
        counts[cause or "other"] += missing
    return name, counts, failed


def main():
    about = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(description=about[0], epilog=about[1], formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pjdfstest")
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--program", default="tenuto")
    parser.add_argument("--size", default="3GiB")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--dir", default="/var/tmp")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_intermixed_args()
    args.pjdfstest = os.path.abspath(args.pjdfstest)
    root = os.path.join(args.pjdfstest, "tests")
    all_tests = sorted(os.path.join(at, it) for at, _, files in os.walk(root) for it in files if it.endswith(".t"))
    # Of systems other than Linux: each is one assertion that passes.
    all_tests = [it for it in all_tests if not re.search(r"/(?:chflags|granular|posix_fallocate)/", it)]
    wanted = tuple(os.path.join(root, it) for it in args.tests or [""])
    tests = [it for it in all_tests if it.startswith(wanted)]
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        store, at = os.path.join(folder, "a.store"), os.path.join(folder, "mnt")
        os.mkdir(at)
        subprocess.run([args.program, "format", store, "--size", args.size], check=True, stdout=subprocess.DEVNULL)
        mount = subprocess.Popen(
            [args.program, "mount", store, at, "--spool", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            if "is mounted" not in mount.stdout.readline():
                sys.exit("the store was not mounted")
            with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
                results = list(pool.map(lambda test: run(test, args, at), tests))
        finally:
            mount.send_signal(signal.SIGTERM)
            try:
                mount.wait(30)
            except subprocess.TimeoutExpired:
                mount.send_signal(signal.SIGTERM)
                mount.wait()
    table, other = {}, 0
    for name, counts, failed in results:
        table.setdefault(name.split("/")[0], collections.Counter()).update(counts)
        other += sum(cause is None for cause, _ in failed)
        for cause, line in failed:
            if args.all or cause is None:
                print(f"{name}: {cause or 'applies'}: {line}")
    columns = ["passed", *NAMES, "other"]
    print(" ".join(["", *(f"| {it} " for it in ["call", *columns])]).strip() + "|")
    print("|---|" + "--:|" * len(columns))
    table["all"] = sum(table.values(), collections.Counter())
    for call, counts in table.items():
        print(f"| {call} | " + " | ".join(f"{counts[it]:,}" for it in columns) + " |")
    sys.exit(1 if other else 0)


main()
