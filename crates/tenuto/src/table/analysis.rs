//! What is made of measurements that are over, and of traces.

use super::{Command, Row, Value, json};

pub(super) const COMPARE: Command = Command {
    name: "compare",
    about: "Say which figures of two runs differ by more than chance",
    long: "\
A and B are directories that `meter run --out` made. Figures are taken second by second, and blocks of \
seconds are drawn again and again to see how much chance alone would move them (a block bootstrap). The \
same two runs always give the same verdict. Of two directories of `meter capacity` the counts are shown.

Storage has days: repeat runs, A B A B, before blaming a change.",
    inner: &[],
    rows: &[
        Row::needed("A", Value::Path, "The run to compare with")
            .example("meter compare monday tuesday")
            .bad("meter compare", "A and B are missing"),
        Row::needed("B", Value::Path, "The run that may be better or worse")
            .example("meter compare monday tuesday")
            .bad("meter compare monday", "B is missing"),
        Row::option("confidence", Value::Count(50, 99), "In per cent, that no verdict is a false alarm")
            .default("95")
            .example("meter compare monday tuesday --confidence 99")
            .bad(
                "meter compare a b --confidence 100",
                "--confidence: '100' is not a whole number from 50 to 99",
            ),
        Row::option("seed", Value::Count(0, u32::MAX as u64), "What the draws come from")
            .default("1")
            .example("meter compare monday tuesday --seed 2")
            .bad("meter compare a b --seed x", "--seed: 'x' is not a whole number from 0 to 4294967295"),
        json("meter compare monday tuesday --json", "meter compare a b --json=x"),
    ],
};
