//! What is made in virtual time, on simulated disks.

use super::{Command, Row, Value, json};

pub(super) const COMMANDS: &[Command] = &[super::simulate::SIMULATE, REPRODUCE];

const REPRODUCE: Command = Command {
    name: "reproduce",
    about: "Make published results again, ours beside theirs",
    long: "\
Without a NAME: lists what can be reproduced. With one: does it on a simulated disk in virtual time, \
which takes seconds and says the same on every machine, and prints our figures beside the paper's.

With --emulated: on a disk that is emulated in real time, by the kernel's own ways of reading, raw and \
through ext2, ext4, XFS and btrfs; alderman-table1 and alderman-rounds can be made so. That takes from \
minutes to hours, and says beforehand how long; it needs root, /dev/fuse and 9.1 GB of disk. \
docs/guide/reproduce.md explains each.",
    inner: &[],
    rows: &[
        Row::maybe("NAME", Value::Choice(&simulator::reproduce::WORDS), "What to reproduce")
            .example("reproduce alderman-bounds")
            .bad("reproduce alderman-bounds too", "unexpected argument 'too'"),
        Row::option("out", Value::Path, "A directory for the page and the charts")
            .long(
                "Made if it is not there. Writes NAME.html, which has all, and a chart each as \
                 NAME-CHART.svg.",
            )
            .example("reproduce alderman-bounds --out charts")
            .bad("reproduce alderman-bounds --out", "--out needs a value"),
        Row::switch("destroy", "Overwrite what is there: an earlier run's page, a backing file")
            .example("reproduce alderman-bounds --out charts --destroy")
            .bad("reproduce alderman-bounds --destroy=x", "--destroy takes no value"),
        Row::switch("emulated", "On a disk emulated in real time, and file systems on it")
            .example("reproduce alderman-table1 --emulated")
            .bad("reproduce alderman-table1 --emulated=ext4", "--emulated takes no value"),
        Row::option("on", Value::Text, "With --emulated: the systems, with commas between")
            .default("raw,ext2,ext4,xfs,btrfs")
            .example("reproduce alderman-table1 --emulated --on raw,ext4")
            .bad("reproduce alderman-table1 --emulated --on", "--on needs a value"),
        Row::option("backing", Value::Path, "With --emulated: the file for the disk's bytes")
            .long(
                "By default one in the directory for temporary files that is removed in the end. One \
                 that is there is overwritten, if --destroy allows it, and kept.",
            )
            .example("reproduce alderman-table1 --emulated --backing disk.img")
            .bad("reproduce alderman-table1 --emulated --backing", "--backing needs a value"),
        Row::option("rounds", Value::Count(5, 100), "With --emulated: rounds of each attempt")
            .default("100")
            .long("The paper's 100 take hours at the disk's own speed. With few of them, one late round that \
                   is forgiven weighs more: a stream or two more are held.")
            .example("reproduce alderman-table1 --emulated --rounds 25")
            .bad(
                "reproduce alderman-table1 --emulated --rounds 1",
                "--rounds: '1' is not a whole number from 5 to 100",
            ),
        Row::option("speed", Value::Count(1, 20), "With --emulated: times as fast as the disk")
            .default("4")
            .long(
                "The disk and the clock by which its rounds are counted both run so fast. What the \
                 machine is late by counts as many times more, which the report says.",
            )
            .example("reproduce alderman-table1 --emulated --speed 1")
            .bad(
                "reproduce alderman-table1 --emulated --speed 0",
                "--speed: '0' is not a whole number from 1 to 20",
            ),
        Row::option("block", Value::Size, "With --emulated: what a stream reads in a round")
            .default("1MB")
            .long("The paper's other one is 512KB.")
            .example("reproduce alderman-table1 --emulated --block 512KB")
            .bad(
                "reproduce alderman-table1 --emulated --block big",
                "--block: 'big' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        json("reproduce alderman-bounds --json", "reproduce alderman-bounds --json=x"),
    ],
};
