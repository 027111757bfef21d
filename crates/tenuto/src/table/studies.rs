//! Studies: what one thing does to storage, other things being equal.
//!
//! What studies there are is in `meter::study::ALL`. Here is what all of them are asked, once.

use super::{Command, Row, Value, json};
use meter::study::{ALL, Study};

pub(super) const STUDY: Command = Command {
    name: "study",
    about: "See what one thing does to it, other things being equal",
    long: "",
    rows: &[],
    inner: &INNER,
};

/// A command for each study of storage, and that of a network.
const INNER: [Command; ALL.len() + 1] = {
    let mut commands = [NETWORK; ALL.len() + 1];
    let mut at = 0;
    while at < ALL.len() {
        commands[at] = command(&ALL[at]);
        at += 1;
    }
    commands
};

const fn command(study: &Study) -> Command {
    let rows = if study.two_nodes { OF_TWO_NODES } else { OF_ONE };
    Command { name: study.name, about: study.about, long: study.long, rows, inner: &[] }
}

/// The rows of a study of storage; `$row`: what it has besides.
macro_rules! rows {
    ($($row:expr),*) => {
        &[
            Row::option("target", Value::Text, "A directory, a file, a device, or sim:MODEL")
                .long(
                    "In a directory files are made, filled, used and gone afterwards. A file or a \
                     block device is only read; studies that write, or make files in a way of their \
                     own, take a directory. sim:MODEL is a simulated disk, in virtual time; it has no \
                     page cache before it.",
                )
                .example("meter study {} --target /mnt/films")
                .bad("meter study {} --target", "--target needs a value"),
            $($row,)*
            Row::option("size", Value::Size, "Of the files that are made for a setting, together")
                .default("1GiB")
                .long("Larger than the caches on the way, or they are what is measured.")
                .example("meter study {} --target /mnt/films --size 64GiB")
                .bad(
                    "meter study {} --size all",
                    "--size: 'all' is not a size such as 64KiB, 40GiB or 2TB",
                ),
            Row::option("clients", Value::Count(1, 1000), "That work at the same time")
                .default("4")
                .example("meter study {} --target /mnt/films --clients 1")
                .bad(
                    "meter study {} --clients 0",
                    "--clients: '0' is not a whole number from 1 to 1000",
                ),
            Row::option("duration", Value::Time, "Of each run: no transfer begins later")
                .default("10s")
                .example("meter study {} --target /mnt/films --duration 1min")
                .bad(
                    "meter study {} --duration 10",
                    "--duration: '10' is not a time such as 500ms, 2s or 1h",
                ),
            Row::option("repeats", Value::Count(1, 100), "Runs of each setting, in shuffled order")
                .default("6")
                .long("From six on a difference can be told from chance with 95 %.")
                .example("meter study {} --target /mnt/films --repeats 12")
                .bad(
                    "meter study {} --repeats 0",
                    "--repeats: '0' is not a whole number from 1 to 100",
                ),
            Row::option("seed", Value::Count(0, 4_294_967_295), "Of what is drawn, and of the order")
                .default("1")
                .example("meter study {} --target /mnt/films --seed 2")
                .bad(
                    "meter study {} --seed x",
                    "--seed: 'x' is not a whole number from 0 to 4294967295",
                ),
            Row::option("out", Value::Path, "A new directory for the report and all figures")
                .example("meter study {} --target /mnt/films --out monday")
                .bad("meter study {} --out", "--out needs a value"),
            json(
                "meter study {} --target /mnt/films --json",
                "meter study {} --json=x",
            ),
        ]
    };
}

const OF_ONE: &[Row] = rows!();

const OF_TWO_NODES: &[Row] = rows!(
    Row::option("second", Value::Path, "A directory on the second node")
        .long("Needed, unless --target is a simulated disk.")
        .example("meter study {} --target /mnt/one --second /mnt/two")
        .bad("meter study {} --target /mnt/one --second", "--second needs a value")
);

const NETWORK: Command = Command {
    name: "network",
    about: "See what link speed, queue, TCP window and packet size do",
    long: "\
Between two network namespaces of this machine, which are made for it and gone afterwards: clients in \
one read blocks of 64 KiB from a server in the other, one after another, over a link of the speed that \
is given and of a tenth of it, with a long and a short queue, with a small window, with large packets. \
The counters of the sending side say what the limit was. Needs root, and `ip`, `tc` and `ss`.",
    inner: &[],
    rows: &[
        Row::option("link", Value::Rate, "Speed of the fast link")
            .default("100Mbps")
            .long("No more than this machine can move between namespaces, or it is the limit.")
            .example("meter study network --link 1Gbps")
            .bad(
                "meter study network --link fast",
                "--link: 'fast' is not a bit rate such as 800kbps, 8.5Mbps or 10Gbps",
            ),
        Row::option("clients", Value::Count(1, 64), "That read at the same time")
            .default("4")
            .example("meter study network --clients 12")
            .bad(
                "meter study network --clients 0",
                "--clients: '0' is not a whole number from 1 to 64",
            ),
        Row::option("duration", Value::Time, "Of each of the six runs")
            .default("5s")
            .example("meter study network --duration 20s")
            .bad(
                "meter study network --duration 5",
                "--duration: '5' is not a time such as 500ms, 2s or 1h",
            ),
        json("meter study network --json", "meter study network --json=x"),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn every_study_is_a_command() {
        let offered = super::STUDY.inner.iter().map(|command| command.name);
        let known = meter::study::ALL.iter().map(|study| study.name).chain(["network"]);
        assert!(offered.eq(known));
    }
}
