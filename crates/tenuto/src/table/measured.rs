//! Streams on a target: `meter run`, `meter capacity`, and what they and the other commands that
//! measure a target share. What is shared is written once.

use super::{Command, Row, Value, json};

/// The rows of a command that measures a target: those of its own, then where it measures and what
/// it leaves. `$name`: as it is typed; `$with`: what else it needs.
macro_rules! on_a_target {
    ($name:literal, $with:literal, [$($row:expr),* $(,)?]) => {
        &[
            $($row,)*
            Row::option("target", Value::Text, "What is measured: a directory, a file, a bucket, a server")
                .long(
                    "In a directory, or at s3://BUCKET/PREFIX, files are made, filled, used and gone \
                     afterwards. A file or a block device is only read, unless --destructive names \
                     it. http://... is a title, or a server with all its titles, which `meter run` \
                     and `meter capacity` play as viewers would. sim:MODEL is a simulated disk, in \
                     virtual time; null: is nothing at all, by the clock on the wall: what is late \
                     there is the meter or this machine.",
                )
                .example(concat!("meter ", $name, $with, " --target sim:hdd-20tb"))
                .bad(concat!("meter ", $name, " --target"), "--target needs a value"),
            Row::option("size", Value::Size, "Of the files that are made in a directory, together")
                .default("4GiB")
                .long("Larger than the caches on the way, or they are what is measured.")
                .example(concat!("meter ", $name, $with, " --target /mnt/films --size 64GiB"))
                .bad(
                    concat!("meter ", $name, " --size all"),
                    "--size: 'all' is not a size such as 64KiB, 40GiB or 2TB",
                ),
            Row::option("fill-level", Value::Count(1, 99), "Fill the file system to so many percent first")
                .long(
                    "The space is reserved and given back afterwards; nothing is written to it, so \
                     that a disk that allocates by itself does not notice.",
                )
                .example(concat!("meter ", $name, $with, " --target /mnt/films --fill-level 90"))
                .bad(
                    concat!("meter ", $name, " --fill-level full"),
                    "--fill-level: 'full' is not a whole number from 1 to 99",
                ),
            Row::switch("buffered", "Through the page cache")
                .long("As programs usually read; what was read lately comes from memory.")
                .example(concat!("meter ", $name, $with, " --target /mnt/films --buffered"))
                .bad(concat!("meter ", $name, " --buffered=yes"), "--buffered takes no value"),
            Row::switch("drop-caches", "Empty the page cache of the files before each run")
                .long(
                    "With --buffered, and where a file system cannot do without the page cache: \
                     what is read then comes from the storage.",
                )
                .example(concat!("meter ", $name, $with, " --target /mnt/films --buffered --drop-caches"))
                .bad(concat!("meter ", $name, " --drop-caches=yes"), "--drop-caches takes no value"),
            Row::option("endpoint", Value::Text, "Where buckets are: http://HOST:PORT")
                .long(
                    "Instead of AWS_ENDPOINT_URL. The keys are AWS_ACCESS_KEY_ID and \
                     AWS_SECRET_ACCESS_KEY, in the environment.",
                )
                .example(concat!("meter ", $name, $with, " --target s3://films --endpoint http://127.0.0.1:9000"))
                .bad(concat!("meter ", $name, " --endpoint"), "--endpoint needs a value"),
            Row::option("region", Value::Text, "Of the bucket")
                .long("Instead of AWS_REGION. Without either us-east-1.")
                .example(concat!("meter ", $name, $with, " --target s3://films --region eu-central-1"))
                .bad(concat!("meter ", $name, " --region"), "--region needs a value"),
            Row::option("destructive", Value::Text, "Write over this file or device; as --target has it")
                .long("What is in it is lost. Without it nothing is written but files made for the run.")
                .example(concat!("meter ", $name, $with, " --target /dev/sdx --destructive /dev/sdx"))
                .bad(concat!("meter ", $name, " --destructive"), "--destructive needs a value"),
            Row::option("metrics", Value::Address, "Serve counts of the run here while it is on: ADDR:PORT")
                .long(
                    "OpenMetrics text at http://ADDR:PORT/metrics, each explained in \
                     docs/reference/metrics.md. Port 0 is any that is free; which one is said on \
                     stderr. Not of players and agents.",
                )
                .example(concat!("meter ", $name, $with, " --target /mnt/films --metrics 127.0.0.1:9101"))
                .bad(
                    concat!("meter ", $name, " --metrics here"),
                    "--metrics: 'here' is not an address such as 127.0.0.1:8080 or [::]:8080",
                ),
            Row::option("out", Value::Path, "A new directory for the report and all figures")
                .long("docs/guide/measure-storage.md says what is in it.")
                .example(concat!("meter ", $name, $with, " --target /mnt/films --out monday"))
                .bad(concat!("meter ", $name, " --out"), "--out needs a value"),
            json(
                concat!("meter ", $name, $with, " --target /mnt/films --json"),
                concat!("meter ", $name, " --json=x"),
            ),
        ]
    };
}

/// The row of a profile. `$named`: one that fits.
macro_rules! profile {
    ($name:literal, $named:literal) => {
        Row::option("profile", Value::Text, "What is asked for: a profile's name, or a TOML file")
            .long("`tenuto meter profiles` lists those that come along.")
            .example(concat!("meter ", $name, " --profile ", $named, " --target /mnt/films"))
            .bad(concat!("meter ", $name, " --profile"), "--profile needs a value")
    };
}

/// The row of a threshold. `$with`: what else the command needs.
macro_rules! threshold {
    ($name:literal, $with:literal) => {
        Row::option("threshold", Value::Rate, "Tell at once when the mean rate falls below this")
            .long("Of all together, in the mean of --window; and when it has come back.")
            .example(concat!("meter ", $name, $with, " --target /mnt/films --threshold 40Mbps"))
            .bad(
                concat!("meter ", $name, " --threshold 40MB"),
                "--threshold: '40MB' is not a bit rate such as 800kbps, 8.5Mbps or 10Gbps",
            )
    };
}

/// The row of its window. `$without`: what it is where it is not given.
macro_rules! window {
    ($name:literal, $with:literal, $without:literal) => {
        Row::option("window", Value::Time, "What --threshold takes the mean of")
            .long($without)
            .example(concat!(
                "meter ",
                $name,
                $with,
                " --target /mnt/films --threshold 9Mbps --window 2s"
            ))
            .bad(
                concat!("meter ", $name, " --window 2"),
                "--window: '2' is not a time such as 500ms, 2s or 1h",
            )
    };
}

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
                     mmap-all, libaio, posix-aio",
                ),
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
            threshold!("run", " --profile xdcam422"),
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
    ("strict", "no frame is late"),
    (
        "one-late-round-of-100",
        "frames of one number are a round; at most one in 100 has a late one",
    ),
];

pub(super) const TRANSFERS: Command = Command {
    name: "transfers",
    about: "Move data as fast as it goes: rate and latency as EBU TECH 3362 defines them",
    long: "\
Each client does one transfer after another, and draws for each: the file, read or write, sequential or \
random, length, start and block size. Rate is the bytes over the time in block transfers, latency all the \
other time (opening, closing, and between blocks), by operation and block size. What is written goes to \
files made for it.",
    inner: &[],
    rows: on_a_target!(
        "transfers",
        " --profile ebu3362-edit",
        [
            profile!("transfers", "ebu3362-edit"),
            threshold!("transfers", " --profile ebu3362-edit"),
            window!(
                "transfers",
                " --profile ebu3362-edit",
                "A second, unless you say otherwise: transfers have no buffer."
            ),
            Row::switch(
                "replace",
                "Each transfer is a whole file; one that is written is a new one"
            )
            .long(
                "It is written beside the old one and takes its name when it is closed. In a \
                     directory, with room for one more file a client.",
            )
            .example("meter transfers --profile ebu3362-write --target /mnt/films --replace")
            .bad("meter transfers --replace=yes", "--replace takes no value"),
            Row::option("clients", Value::Count(1, 1000), "How many work at the same time")
                .default("1")
                .example("meter transfers --profile ebu3362-read --target /mnt/films --clients 4")
                .bad(
                    "meter transfers --clients 0",
                    "--clients: '0' is not a whole number from 1 to 1000",
                ),
            Row::option("duration", Value::Time, "No transfer begins later")
                .default("60s")
                .example("meter transfers --profile ebu3362-edit --target /mnt/films --duration 1h")
                .bad(
                    "meter transfers --duration 60",
                    "--duration: '60' is not a time such as 500ms, 2s or 1h",
                ),
            Row::option("transfers", Value::Count(1, 1_000_000_000), "Of each client at most")
                .example(
                    "meter transfers --profile ebu3362-edit --target /mnt/films --transfers 500"
                )
                .bad(
                    "meter transfers --transfers all",
                    "--transfers: 'all' is not a whole number from 1 to 1000000000",
                ),
            Row::option("files", Value::Count(1, 10_000), "Files that are drawn from")
                .default("1")
                .long("In a directory; together they take --size.")
                .example("meter transfers --profile ebu3362-edit --target /mnt/films --files 8")
                .bad(
                    "meter transfers --files 0",
                    "--files: '0' is not a whole number from 1 to 10000"
                ),
            Row::switch("own-files", "Each client has a file of its own")
                .example("meter transfers --profile ebu3362-edit --target /mnt/films --own-files")
                .bad("meter transfers --own-files=yes", "--own-files takes no value"),
            Row::option("length", Value::Size, "Of a transfer at most, instead of the profile's")
                .example(
                    "meter transfers --profile ebu3362-edit --target /mnt/films --length 64MiB"
                )
                .bad(
                    "meter transfers --length long",
                    "--length: 'long' is not a size such as 64KiB, 40GiB or 2TB",
                ),
            Row::option("block", Value::Size, "The only block size, instead of the profile's")
                .long("Up to 256 MiB.")
                .example("meter transfers --profile ebu3362-read --target /mnt/films --block 4MiB")
                .bad(
                    "meter transfers --block big",
                    "--block: 'big' is not a size such as 64KiB, 40GiB or 2TB",
                ),
            Row::option(
                "frames",
                Value::Count(1, 10_000),
                "Lengths of one to so many whole frames"
            )
            .long("Of a profile with frames; each frame is a block.")
            .example("meter transfers --profile dpx10-hd --target /mnt/films --frames 24")
            .bad(
                "meter transfers --frames 0",
                "--frames: '0' is not a whole number from 1 to 10000",
            ),
            Row::option("think", Value::Time, "Wait up to so long before each transfer")
                .example("meter transfers --profile ebu3362-edit --target /mnt/films --think 50ms")
                .bad(
                    "meter transfers --think long",
                    "--think: 'long' is not a time such as 500ms, 2s or 1h",
                ),
            Row::switch("unrepeated", "Ask for no byte twice before all have been")
                .long("Against caches that cannot be switched off.")
                .example("meter transfers --profile ebu3362-read --target /mnt/films --unrepeated")
                .bad("meter transfers --unrepeated=yes", "--unrepeated takes no value"),
            Row::option(
                "seed",
                Value::Count(0, 4_294_967_295),
                "Of what is drawn: the same again for the same"
            )
            .default("1")
            .example("meter transfers --profile ebu3362-edit --target /mnt/films --seed 2")
            .bad(
                "meter transfers --seed x",
                "--seed: 'x' is not a whole number from 0 to 4294967295",
            ),
        ]
    ),
};

pub(super) const RAMP: Command = Command {
    name: "ramp",
    about: "The same transfers with more and more clients, as the EBU's test scripts have it",
    long: "\
ebu-single-read, -write and -edit: 1 to 10 clients on a single file; ebu-multi-read, -write, -edit and \
-file-write, -file-replace: 4 to 40 clients with a file each; an hour for each number, unless --step says otherwise. \
The report has rate and latency against the number of clients.",
    inner: &[],
    rows: on_a_target!(
        "ramp ebu-multi-read",
        "",
        [
            Row::needed("SCRIPT", Value::Text, "One that comes along, or a TOML file")
                .example("meter ramp ebu-single-read --target /mnt/films --step 1min")
                .bad("meter ramp --target /mnt/films", "SCRIPT is missing"),
            Row::option("step", Value::Time, "Of each number of clients, instead of the script's")
                .example("meter ramp ebu-multi-edit --target /mnt/films --step 5min")
                .bad(
                    "meter ramp ebu-multi-edit --step 60",
                    "--step: '60' is not a time such as 500ms, 2s or 1h",
                ),
            Row::option(
                "seed",
                Value::Count(0, 4_294_967_295),
                "Of what is drawn: the same again for the same"
            )
            .default("1")
            .example("meter ramp ebu-multi-edit --target /mnt/films --seed 2")
            .bad(
                "meter ramp ebu-multi-edit --seed x",
                "--seed: 'x' is not a whole number from 0 to 4294967295",
            ),
            Row::switch("toml", "Print the script, to change and use")
                .example("meter ramp ebu-multi-edit --toml")
                .bad("meter ramp ebu-multi-edit --toml=x", "--toml takes no value"),
        ]
    ),
};

pub(super) const REPORT: Command = Command {
    name: "report",
    about: "Count a run's misses again, from its log alone",
    long: "\
Reads operations.parquet of a directory that --out made, also of a run that was interrupted, and says what \
was late; writes recount.html beside it. Ends with exit code 5 where the summary differs by more than one \
frame.",
    inner: &[],
    rows: &[
        Row::needed("DIR", Value::Path, "What --out named")
            .example("meter report monday")
            .bad("meter report", "DIR is missing"),
        json("meter report monday --json", "meter report monday --json=x"),
    ],
};

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
    ("preadv2", "preadv2: what is cached at once; polling where the disk can"),
    ("mmap", "map a read, touch its pages, unmap; one after another"),
    ("mmap-all", "map all reads, then touch their pages one after another"),
    ("libaio", "io_submit, the kernel's older asynchronous reads"),
    ("posix-aio", "the C library's aio_read (threads behind the scenes)"),
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
