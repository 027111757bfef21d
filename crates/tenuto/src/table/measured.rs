//! Streams on a target: `meter run`, `meter capacity` and `meter bottleneck`.

use super::on_target::{each, on_a_target, profile, threshold, window};
use super::{Command, Row, Value, ca_file, cert_file, insecure, json, key_file, switching};

/// The rows of a command that runs streams.
macro_rules! streams {
    ($name:literal, $with:literal, [$($row:expr),* $(,)?]) => {
        on_a_target!($name, $with, [
            $($row,)*
            profile!($name, "xdcam422"),
            Row::option("layout", Value::Choice(LAYOUTS), "How streams share files")
                .default("profile")
                .example(concat!("meter ", $name, $with, " --target /mnt/films --layout file-per-stream"))
                .bad(
                    concat!("meter ", $name, " --layout tape"),
                    "--layout: 'tape' is not one of profile, one-file, shared-file, \
                     file-per-stream, file-per-frame",
                ),
            Row::option("buffer", Value::Count(1, 10_000), "Frames that a client keeps")
                .default("8")
                .long("A frame is late when it comes so many frames after it was to be asked for.")
                .example(concat!("meter ", $name, $with, " --target /mnt/films --buffer 25"))
                .bad(
                    concat!("meter ", $name, " --buffer 0"),
                    "--buffer: '0' is not a whole number from 1 to 10000",
                ),
            Row::option("method", Value::Choice(METHODS), "How a single file is read and written")
                .default("best")
                .long(
                    "One that the kernel refuses is replaced by threads; the report says so. Many \
                     files are always read and written by threads.",
                )
                .example(concat!("meter ", $name, $with, " --target /mnt/films --method libaio"))
                .bad(
                    concat!("meter ", $name, " --method aio"),
                    "--method: 'aio' is not one of best, io_uring, threads, pread, preadv2, mmap, \
                     mmap-all, libaio, posix-aio, io_uring-poll",
                ),
            Row::switch("realtime", "Let the measuring thread go before all other programs")
                .long(
                    "On a busy machine frames are otherwise asked for milliseconds late. Needs root or \
                     CAP_SYS_NICE. Not where the storage itself is a program on this machine: it would \
                     wait for the meter.",
                )
                .example(concat!("meter ", $name, $with, " --target /mnt/films --realtime"))
                .bad(concat!("meter ", $name, " --realtime=yes"), "--realtime takes no value"),
            Row::switch("spin", "Watch the clock rather than sleep until a frame is due")
                .long(
                    "Frames are asked for on time where sleepers are woken late, as on virtual machines. \
                     Takes up to a processor, more so the closer frames are due to each other; with fewer \
                     processors than work it sleeps as without. Not with --realtime.",
                )
                .example(concat!("meter ", $name, $with, " --target /mnt/films --spin"))
                .bad(concat!("meter ", $name, " --spin=yes"), "--spin takes no value"),
        ])
    };
}

pub(super) const CAPACITY: Command = Command {
    name: "capacity",
    about: "Find the largest number of streams that a storage holds",
    long: "\
Runs more and more streams until frames are late, narrows it down, and asks again: one more than the \
largest held must fail once more, and the largest held must hold for three times as long right after. \
Where it does not, the search goes on with such long runs; there are at most 30. Ends with exit code 5 when the storage gives no steady answer, or when this machine \
and not the storage was late.",
    inner: &[],
    rows: streams!("capacity", " --profile xdcam422", [
        switching(
            "meter capacity --target http://127.0.0.1:8080 --switching hls.js",
            "meter capacity --target http://127.0.0.1:8080 --switching bola",
        ),
        Row::option("rule", Value::Choice(RULES), "What counts as held")
            .default("strict")
            .example(
                "meter capacity --profile mpeg-1.5 --target /dev/sdb --rule one-late-round-of-100",
            )
            .bad(
                "meter capacity --rule loose",
                "--rule: 'loose' is not one of strict, one-late-round-of-100",
            ),
        Row::option("most", Value::Count(1, 100_000), "Try no more than so many")
            .default("4096")
            .example("meter capacity --profile xdcam422 --target /mnt/films --most 50")
            .bad("meter capacity --most 0", "--most: '0' is not a whole number from 1 to 100000"),
        Row::option("duration", Value::Time, "Of each run; the confirming one is three times as long")
            .default("20s")
            .long("Longer runs are surer; the report says how sure.")
            .example("meter capacity --profile xdcam422 --target /mnt/films --duration 5min")
            .bad(
                "meter capacity --duration 60",
                "--duration: '60' is not a time such as 500ms, 2s or 1h",
            ),
    ]),
};

pub(super) const BOTTLENECK: Command = Command {
    name: "bottleneck",
    about: "Find which part of the way to a storage ends first",
    long: "\
Searches the largest number of streams on more and more of the way: with nothing behind the meter, from \
this machine's memory, from the memory of the server (where there is one), and from the storage. The first \
that holds no more than the last is the bottleneck; what was full there is named. A rung takes 14 runs at \
most.",
    inner: &[],
    rows: streams!("bottleneck", " --profile xdcam422", [
        Row::option("rule", Value::Choice(RULES), "What counts as held")
            .default("strict")
            .example(
                "meter bottleneck --profile mpeg-1.5 --target /dev/sdb --rule one-late-round-of-100",
            )
            .bad(
                "meter bottleneck --rule loose",
                "--rule: 'loose' is not one of strict, one-late-round-of-100",
            ),
        Row::option("most", Value::Count(1, 100_000), "Try no more than so many")
            .default("4096")
            .example("meter bottleneck --profile xdcam422 --target /mnt/films --most 50")
            .bad("meter bottleneck --most 0", "--most: '0' is not a whole number from 1 to 100000"),
        Row::option("duration", Value::Time, "Of each run; a confirming one is three times as long")
            .default("5s")
            .long("Four rungs of 14 runs: six minutes, or three times that where storage is unsteady.")
            .example("meter bottleneck --profile xdcam422 --target /mnt/films --duration 20s")
            .bad(
                "meter bottleneck --duration 60",
                "--duration: '60' is not a time such as 500ms, 2s or 1h",
            ),
    ]),
};

pub(super) const BY_METHOD: Command = Command {
    name: "methods",
    about: "Find how many streams each of the kernel's ways of reading holds",
    long: "\
The same search on the same file by io_uring, threads, pread, preadv2, mmap, mmap-all, libaio, posix-aio and \
io_uring-poll, one after another: the first table of Alderman and Diallo's paper for this machine. What the \
kernel refuses for that file is left out, and named with its reason: io_uring-poll takes a disk with queues \
that are polled. Each takes 14 runs at most. mmap reads through the page cache, which is emptied of the file \
before each run.",
    inner: &[],
    rows: streams!("methods", " --profile xdcam422", [
        Row::option("rule", Value::Choice(RULES), "What counts as held")
            .default("strict")
            .long("one-late-round-of-100 is the paper's.")
            .example(
                "meter methods --profile mpeg-1.5 --target /dev/sdb --rule one-late-round-of-100",
            )
            .bad(
                "meter methods --rule loose",
                "--rule: 'loose' is not one of strict, one-late-round-of-100",
            ),
        Row::option("most", Value::Count(1, 100_000), "Try no more than so many")
            .default("4096")
            .example("meter methods --profile xdcam422 --target /mnt/films --most 50")
            .bad("meter methods --most 0", "--most: '0' is not a whole number from 1 to 100000"),
        Row::option("duration", Value::Time, "Of each run; a confirming one is three times as long")
            .default("5s")
            .long("Nine ways at most, of 14 runs: ten minutes, or more where storage is unsteady.")
            .example("meter methods --profile xdcam422 --target /mnt/films --duration 20s")
            .bad(
                "meter methods --duration 60",
                "--duration: '60' is not a time such as 500ms, 2s or 1h",
            ),
    ]),
};

pub(super) const RUN: Command = Command {
    name: "run",
    about: "Read and write as so many players and cameras would, and count the frames that are late",
    long: "\
Every stream asks for its frames by the clock, however late the storage is. A frame is late when it is \
not there, or not written, --buffer frames after it was to be asked for. What this machine is late with \
itself is counted apart; a run with more than one such frame in a thousand is not valid (exit code 5).",
    inner: &[],
    rows: streams!(
        "run",
        " --profile xdcam422",
        [
            Row::option("streams", Value::Count(1, 100_000), "How many")
                .default("1")
                .example("meter run --profile xdcam422 --target /mnt/films --streams 20")
                .bad(
                    "meter run --streams 0",
                    "--streams: '0' is not a whole number from 1 to 100000",
                ),
            switching(
                "meter run --target http://127.0.0.1:8080 --streams 20 --switching hls.js",
                "meter run --target http://127.0.0.1:8080 --switching bola",
            ),
            threshold!("run", " --profile xdcam422"),
            each!("run", " --profile xdcam422", "each stream"),
            window!(
                "run",
                " --profile xdcam422",
                "The time that a client's buffer lasts, unless you say otherwise."
            ),
            Row::option("duration", Value::Time, "For so long")
                .default("60s")
                .long("Longer runs are surer; the report says how sure.")
                .example("meter run --profile xdcam422 --target /mnt/films --duration 5min")
                .bad(
                    "meter run --duration 60",
                    "--duration: '60' is not a time such as 500ms, 2s or 1h",
                ),
            Row::option("agents", Value::Text, "Run on these agents: ADDRESS,ADDRESS")
                .long(
                    "Streams are shared out among them; --target is a directory on each. `tenuto meter \
                     agent` makes one. An agent that is lost makes the run invalid.",
                )
                .example("meter run --profile xdcam422 --target /mnt/films --agents 10.0.0.1:7070,10.0.0.2:7070")
                .bad("meter run --agents", "--agents needs a value"),
            Row::option("hosts", Value::Text, "Run on these hosts, by ssh: HOST,HOST")
                .long(
                    "Copies this program there, starts it as an agent, and removes it afterwards. ssh must \
                     ask nothing.",
                )
                .example("meter run --profile xdcam422 --target /mnt/films --hosts edit1,edit2")
                .bad("meter run --hosts", "--hosts needs a value"),
            Row::option("ssh", Value::Text, "The ssh of --hosts, with options of its own")
                .default("ssh")
                .long(
                    "Split at blanks. An OpenSSH from 8.0 on is asked for a quick key exchange and cipher \
                     (curve25519-sha256, aes128-gcm), so that many logins are made sooner; options here go \
                     before that.",
                )
                .example("meter run --profile xdcam422 --target /mnt/films --hosts edit1 --ssh ./our-ssh")
                .bad("meter run --ssh", "--ssh needs a value"),
            Row::option("program", Value::Path, "The program that --hosts get; this one unless named")
                .long(
                    "What `make agent` built runs on any Linux of its architecture and is copied \
                     sooner. It must be of the same version as this one.",
                )
                .example("meter run --profile xdcam422 --target /mnt/films --hosts edit1 --program target/agent/tenuto")
                .bad("meter run --program", "--program needs a value"),
            Row::option("token-file", Value::Path, "What these --agents know, too")
                .example("meter run --profile xdcam422 --agents 10.0.0.1:7070 --token-file secret")
                .bad("meter run --token-file", "--token-file needs a value"),
            Row::option("workers", Value::Count(1, 256), "Processes on each agent")
                .default("1")
                .long("Streams are shared out among them. Each makes files of --size for itself.")
                .example("meter run --profile xdcam422 --agents 10.0.0.1:7070 --workers 4")
                .bad("meter run --workers 0", "--workers: '0' is not a whole number from 1 to 256"),
            Row::switch("hold", "Prepare, say `ready`, and begin at a line of standard input")
                .long("For who starts several at once, as agents do. At the end of standard input it stops.")
                .example("meter run --profile xdcam422 --target /mnt/films --hold")
                .bad("meter run --hold=x", "--hold takes no value"),
        ]
    ),
};

const RULES: &[(&str, &str)] = &[
    ("strict", "no frame is late; players get no piece smaller than it has to be"),
    (
        "one-late-round-of-100",
        "frames of one number are a round; at most one in 100 has a late one",
    ),
];

/// A test compares these with `meter::target::Layout`.
const LAYOUTS: &[(&str, &str)] = &[
    ("profile", "a file for each frame if the profile says so, else one file"),
    ("one-file", "one file, of which each stream has a part"),
    ("shared-file", "one file that all go through, begun at different places"),
    ("file-per-stream", "a file for each stream"),
    ("file-per-frame", "a file for each frame, opened and closed each time"),
];

/// A test compares these with `device::Method`.
pub(super) const METHODS: &[(&str, &str)] = &[
    ("best", "io_uring, or threads where the kernel refuses that"),
    ("io_uring", "io_uring: registered file and buffers, one call for many reads"),
    ("threads", "a pool of threads, each in a pread"),
    ("pread", "pread, one read after another"),
    ("preadv2", "preadv2: what is cached at once; one read after another"),
    ("mmap", "map a read, touch its pages, unmap; one after another"),
    ("mmap-all", "map all reads, then touch their pages one after another"),
    ("libaio", "io_submit, the kernel's older asynchronous reads"),
    ("posix-aio", "the C library's aio_read (threads behind the scenes)"),
    ("io_uring-poll", "io_uring that polls, where the disk has queues for it"),
];

#[cfg(test)]
mod tests {
    #[test]
    fn all_methods_are_offered_as_they_call_themselves() {
        let known = device::Method::NAMES.map(|(name, method)| (name, method.about()));
        assert_eq!(super::METHODS, known);
    }

    #[test]
    fn all_layouts_are_offered() {
        let known = meter::target::Layout::NAMES.map(|(name, _)| name);
        let offered: Vec<&str> = super::LAYOUTS[1..].iter().map(|(name, _)| *name).collect();
        assert_eq!(offered, known);
    }
}
