//! What is made in virtual time, on simulated disks.

use super::{Command, Row, Value, json};

pub(super) const COMMANDS: &[Command] = &[super::simulate::SIMULATE, REPRODUCE];

const REPRODUCE: Command = Command {
    name: "reproduce",
    about: "Make published results again, ours beside theirs",
    long: "\
Without a NAME: lists what can be reproduced. With one: does it on a simulated disk in virtual time, \
which takes seconds and says the same on every machine, and prints our figures beside the paper's. \
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
        Row::switch("destroy", "Overwrite what an earlier run wrote there")
            .example("reproduce alderman-bounds --out charts --destroy")
            .bad("reproduce alderman-bounds --destroy=x", "--destroy takes no value"),
        json("reproduce alderman-bounds --json", "reproduce alderman-bounds --json=x"),
    ],
};
