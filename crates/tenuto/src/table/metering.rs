//! Measuring disks from outside.

use super::analysis::COMPARE;
use super::{Command, Row, Value, json};

pub(super) const COMMANDS: &[Command] = &[METER];

const METER: Command = Command {
    name: "meter",
    about: "Measure what disks, files and file systems hold",
    long: "",
    rows: &[],
    inner: &[CAPACITY, RUN, PROFILES, ROUNDS, COMPARE],
};

const ROUNDS: Command = Command {
    name: "rounds",
    about: "Read in rounds, as many streams would, and see which are late",
    long: "\
Every stream gets a block every round, which lasts as long as a block plays. Block k must be in \
memory k + 1 rounds after the start, however late the rounds before were. A hundred rounds with at \
most one late count as held. Streams start all over the TARGET, which is only read.

Several targets are read at the same time, each with as many streams. sim:MODEL is a simulated disk \
(`tenuto disk models` lists them), read in virtual time: a run takes no time and is always the same.",
    inner: &[],
    rows: &[
        Row::many("TARGET", Value::Text, "Files, block devices, or sim:MODEL")
            .example("meter rounds /dev/sdb /dev/sdc")
            .bad("meter rounds", "TARGET is missing"),
        Row::option("streams", Value::Count(1, 100_000), "Streams of each target")
            .default("10")
            .example("meter rounds sim:st39183w --streams 63 --block 1MB --rate 1.5Mbps")
            .bad(
                "meter rounds film.bin --streams 0",
                "--streams: '0' is not a whole number from 1 to 100000",
            ),
        Row::option("block", Value::Size, "What a stream reads in a round")
            .default("1MiB")
            .example("meter rounds film.bin --block 4MiB")
            .bad(
                "meter rounds film.bin --block big",
                "--block: 'big' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("rate", Value::Rate, "What a stream plays")
            .default("5Mbps")
            .example("meter rounds film.bin --rate 8Mbps")
            .bad(
                "meter rounds film.bin --rate 8MB",
                "--rate: '8MB' is not a bit rate such as 800kbps, 8.5Mbps or 10Gbps",
            ),
        Row::option("rounds", Value::Count(1, 1_000_000), "How many")
            .default("100")
            .example("meter rounds film.bin --rounds 10")
            .bad(
                "meter rounds film.bin --rounds all",
                "--rounds: 'all' is not a whole number from 1 to 1000000",
            ),
        Row::option("order", Value::Choice(ORDERS), "Order of a round's blocks")
            .default("scan")
            .example("meter rounds film.bin --order arrival")
            .bad("meter rounds film.bin --order up", "--order: 'up' is not one of scan, arrival"),
        Row::option("at-once", Value::Count(1, 4096), "Reads asked for at once")
            .default("1")
            .long("As many as there are streams leaves the order to the system and the disk.")
            .example("meter rounds film.bin --streams 40 --at-once 40")
            .bad(
                "meter rounds film.bin --at-once 0",
                "--at-once: '0' is not a whole number from 1 to 4096",
            ),
        Row::option("method", Value::Choice(METHODS), "How they are read")
            .default("best")
            .long("One that the kernel refuses is replaced by threads; the report says so.")
            .example("meter rounds film.bin --method mmap")
            .bad(
                "meter rounds film.bin --method aio",
                "--method: 'aio' is not one of best, io_uring, threads, pread, preadv2, mmap, \
                 mmap-all, libaio, posix-aio",
            ),
        Row::switch("buffered", "Through the page cache")
            .long(
                "As programs usually read; what was read or written lately comes from memory. mmap \
                 always does.",
            )
            .example("meter rounds film.bin --buffered")
            .bad("meter rounds film.bin --buffered=yes", "--buffered takes no value"),
        Row::switch("free", "Begin each round when the one before is over")
            .long("As fast as it goes: for the rate, and for how evenly streams share it.")
            .example("meter rounds film.bin --free")
            .bad("meter rounds film.bin --free=yes", "--free takes no value"),
        json("meter rounds film.bin --json", "meter rounds film.bin --json=x"),
    ],
};

const CAPACITY: Command = Command {
    name: "capacity",
    about: "Find the largest number of streams that a storage holds",
    long: "\
Runs more and more streams until frames are late, narrows it down, and asks again: one more than the \
largest held must fail once more, and the largest held must hold for three times as long right after. \
Where it does not, the search goes on with such long runs; there are at most 30. Ends with exit code 5 when the storage gives no steady answer, or when this machine \
and not the storage was late.",
    inner: &[],
    rows: &[
        Row::option("profile", Value::Text, "What the streams are: a profile's name, or a TOML file")
            .long("`tenuto meter profiles` lists those that come along.")
            .example("meter capacity --profile xdcam422 --target /mnt/films")
            .bad("meter capacity --profile", "--profile needs a value"),
        Row::option("target", Value::Text, "A directory, a file, a block device, or sim:MODEL")
            .long(
                "In a directory a file is made, filled, read and gone afterwards; a file or a device is \
                 only read. sim:MODEL is a simulated disk, in virtual time.",
            )
            .example("meter capacity --profile xdcam422 --target sim:hdd-20tb")
            .bad("meter capacity --target", "--target needs a value"),
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
            .bad(
                "meter capacity --most 0",
                "--most: '0' is not a whole number from 1 to 100000",
            ),
        Row::option("duration", Value::Time, "Of each run; the confirming one is three times as long")
            .default("20s")
            .long("Longer runs are surer; the report says how sure.")
            .example("meter capacity --profile xdcam422 --target /mnt/films --duration 5min")
            .bad(
                "meter capacity --duration 60",
                "--duration: '60' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("buffer", Value::Count(1, 10_000), "Frames that a client keeps")
            .default("8")
            .long("A frame is late when it comes so many frames after it was to be asked for.")
            .example("meter capacity --profile xdcam422 --target /mnt/films --buffer 25")
            .bad(
                "meter capacity --buffer 0",
                "--buffer: '0' is not a whole number from 1 to 10000",
            ),
        Row::option("size", Value::Size, "Of the file that is made in a directory")
            .default("4GiB")
            .long("Larger than the caches on the way, or they are what is measured.")
            .example("meter capacity --profile xdcam422 --target /mnt/films --size 64GiB")
            .bad(
                "meter capacity --size all",
                "--size: 'all' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("method", Value::Choice(METHODS), "How it is read")
            .default("best")
            .long("One that the kernel refuses is replaced by threads; the report says so.")
            .example("meter capacity --profile xdcam422 --target /mnt/films --method libaio")
            .bad(
                "meter capacity --method aio",
                "--method: 'aio' is not one of best, io_uring, threads, pread, preadv2, mmap, \
                 mmap-all, libaio, posix-aio",
            ),
        Row::switch("buffered", "Through the page cache")
            .long("As programs usually read; what was read lately comes from memory.")
            .example("meter capacity --profile xdcam422 --target /mnt/films --buffered")
            .bad("meter capacity --buffered=yes", "--buffered takes no value"),
        Row::option("out", Value::Path, "A new directory for the report and all figures")
            .long("docs/guide/measure-storage.md says what is in it.")
            .example("meter capacity --profile xdcam422 --target /mnt/films --out monday")
            .bad("meter capacity --out", "--out needs a value"),
        json(
            "meter capacity --profile xdcam422 --target /mnt/films --json",
            "meter capacity --json=x",
        ),
    ],
};

const RUN: Command = Command {
    name: "run",
    about: "Read as so many players would, and count the frames that are late",
    long: "\
Every stream asks for its frames by the clock, however late the storage is. A frame is late when it is \
not there --buffer frames after it was to be asked for. What this machine is late with itself is \
counted apart; a run with more than one such frame in a thousand is not valid (exit code 5).",
    inner: &[],
    rows: &[
        Row::option("profile", Value::Text, "What the streams are: a profile's name, or a TOML file")
            .long("`tenuto meter profiles` lists those that come along.")
            .example("meter run --profile xdcam422 --target /mnt/films")
            .bad("meter run --profile", "--profile needs a value"),
        Row::option("target", Value::Text, "A directory, a file, a block device, or sim:MODEL")
            .long(
                "In a directory a file is made, filled, read and gone afterwards; a file or a device is \
                 only read. sim:MODEL is a simulated disk, in virtual time.",
            )
            .example("meter run --profile xdcam422 --target sim:hdd-20tb")
            .bad("meter run --target", "--target needs a value"),
        Row::option("streams", Value::Count(1, 100_000), "How many")
            .default("1")
            .example("meter run --profile xdcam422 --target /mnt/films --streams 20")
            .bad(
                "meter run --streams 0",
                "--streams: '0' is not a whole number from 1 to 100000",
            ),
        Row::option("duration", Value::Time, "For so long")
            .default("60s")
            .long("Longer runs are surer; the report says how sure.")
            .example("meter run --profile xdcam422 --target /mnt/films --duration 5min")
            .bad(
                "meter run --duration 60",
                "--duration: '60' is not a time such as 500ms, 2s or 1h",
            ),
        Row::option("buffer", Value::Count(1, 10_000), "Frames that a client keeps")
            .default("8")
            .long("A frame is late when it comes so many frames after it was to be asked for.")
            .example("meter run --profile xdcam422 --target /mnt/films --buffer 25")
            .bad(
                "meter run --buffer 0",
                "--buffer: '0' is not a whole number from 1 to 10000",
            ),
        Row::option("size", Value::Size, "Of the file that is made in a directory")
            .default("4GiB")
            .long("Larger than the caches on the way, or they are what is measured.")
            .example("meter run --profile xdcam422 --target /mnt/films --size 64GiB")
            .bad(
                "meter run --size all",
                "--size: 'all' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("method", Value::Choice(METHODS), "How it is read")
            .default("best")
            .long("One that the kernel refuses is replaced by threads; the report says so.")
            .example("meter run --profile xdcam422 --target /mnt/films --method libaio")
            .bad(
                "meter run --method aio",
                "--method: 'aio' is not one of best, io_uring, threads, pread, preadv2, mmap, \
                 mmap-all, libaio, posix-aio",
            ),
        Row::switch("buffered", "Through the page cache")
            .long("As programs usually read; what was read lately comes from memory.")
            .example("meter run --profile xdcam422 --target /mnt/films --buffered")
            .bad("meter run --buffered=yes", "--buffered takes no value"),
        Row::option("out", Value::Path, "A new directory for the report and all figures")
            .long("docs/guide/measure-storage.md says what is in it.")
            .example("meter run --profile xdcam422 --target /mnt/films --out monday")
            .bad("meter run --out", "--out needs a value"),
        json(
            "meter run --profile xdcam422 --target /mnt/films --json",
            "meter run --json=x",
        ),
    ],
};

const PROFILES: Command = Command {
    name: "profiles",
    about: "Say what streams of known formats ask for",
    long: "\
Bytes of a frame, frames a second, rate, and where the figures come from. verified: the source states \
them; derived: computed from what it states or from a published layout; house: our own choice. With a \
NAME: everything about one, or about your own file.",
    inner: &[],
    rows: &[
        Row::maybe("NAME", Value::Text, "One profile in full: its name, or a TOML file")
            .example("meter profiles prores-hq-uhd")
            .bad("meter profiles v210-hd v210-uhd", "unexpected argument 'v210-uhd'"),
        Row::switch("verify", "Compute the figures again and say what disagrees")
            .example("meter profiles --verify")
            .bad("meter profiles --verify=x", "--verify takes no value"),
        Row::switch("toml", "Print the profile's file, to change and use")
            .example("meter profiles prores-hq-uhd --toml")
            .bad("meter profiles v210-hd --toml=x", "--toml takes no value"),
        json("meter profiles --json", "meter profiles --json=x"),
    ],
};

const ORDERS: &[(&str, &str)] = &[
    ("scan", "by place, every other round from the far end"),
    ("arrival", "at random, as requests come in"),
];

const RULES: &[(&str, &str)] = &[
    ("strict", "no frame is late"),
    (
        "one-late-round-of-100",
        "frames of one number are a round; at most one in 100 has a late one",
    ),
];

/// A test compares these with `device::Method`.
const METHODS: &[(&str, &str)] = &[
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
}
