//! Studies: what one thing does to storage, other things being equal.

use super::{Command, Row, Value, json};

pub(super) const STUDY: Command = Command {
    name: "study",
    about: "See what one thing does to it, other things being equal",
    long: "",
    rows: &[],
    inner: &[NETWORK],
};

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
