//! Measuring disks from outside.

use super::analysis::{AGENT, COMPARE, PROFILE_FROM};
use super::measured::{BOTTLENECK, BY_METHOD, CAPACITY, METHODS, RUN};
use super::studies::STUDY;
use super::transferred::{RAMP, REPORT, TRANSFERS};
use super::{Command, Row, Value, json};

pub(super) const COMMANDS: &[Command] = &[METER];

const METER: Command = Command {
    name: "meter",
    about: "Measure what disks, files and file systems hold",
    long: "",
    rows: &[],
    inner: &[
        CAPACITY,
        BOTTLENECK,
        BY_METHOD,
        RUN,
        TRANSFERS,
        RAMP,
        REPORT,
        PROFILES,
        ROUNDS,
        COMPARE,
        PROFILE_FROM,
        AGENT,
        STUDY,
    ],
};

/// What an agent needs.
pub(super) const LENT: &[Command] = &[Command { inner: &[RUN, AGENT], ..METER }];

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
                 mmap-all, libaio, posix-aio, io_uring-poll",
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
        Row::switch("alone", "Read each of several targets by itself first, then all together")
            .long("What they cost each other: the bus, the processor, the memory they share.")
            .example("meter rounds /dev/sdb /dev/sdc --alone")
            .bad("meter rounds film.bin --alone=yes", "--alone takes no value"),
        json("meter rounds film.bin --json", "meter rounds film.bin --json=x"),
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
