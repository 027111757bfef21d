//! Figures 35 and 36: files after days of edit writes, defragmented or not, on approach 1.

use super::super::Report;
use super::node::{Build, Landing, Node};
use super::{
    ASSUMED, Claims, Direction, FILE, Size, approach_1, figure, line, mean, mix, rate, row, step,
};
use meter::log::OperationKind;
use std::time::Duration;

/// Sequential reads of a client, in MB/s, by clients; after so many writes.
fn reads(landing: Landing, writes: u64) -> Vec<(f64, f64)> {
    let build = Build { landing, cache: 0, ..approach_1() };
    let mut node = Node::new(&build, FILES, FILE);
    node.age(writes, build.write_room / u64::from(FILES), 1);
    let mix = mix("ebu3362-edit", FILES, true);
    let of = |clients| {
        let outcome = step(&mut node, &mix, clients, STEP);
        (f64::from(clients), rate(&row(&outcome, OperationKind::Read, false)))
    };
    (1..=5).map(|number| number * 8).map(of).collect()
}

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let together = reads(Landing::Gathered, DAYS);
    progress(0.3);
    let apart = reads(Landing::Scattered, DAYS);
    progress(0.6);
    let young = reads(Landing::Scattered, 0);
    progress(1.0);
    let middle = |of: &[(f64, f64)]| mean(of.iter().map(|(_, rate)| *rate));
    let (with, without, new) = (middle(&together), middle(&apart), middle(&young));
    let mut claims = Claims::new();
    claims.add(
        "35, 36",
        "without defragmentation a client reads slower after days of use, by 24 MB/s",
        format!("{with:.1} MB/s a client with it, {without:.1} without"),
        Direction::BuiltIn,
        Some(Size::of(24.0, with - without, 0, " MB/s")),
    );
    claims.add(
        "36",
        "it becomes slower over time",
        format!("{new:.1} MB/s a client at first, {without:.1} in the end"),
        Direction::BuiltIn,
        None,
    );
    Report {
        source: "EBU TECH 3362, section 6.7, figures 35 and 36",
        method: format!(
            "The edit profile with one file per client, on approach 1 without its cache (a cache \
            would hide the effect), after edit writes of as many bytes as the files hold. {ASSUMED}"
        ),
        tables: vec![claims.into_table()],
        notes: vec![
            "The direction is built into the model and is no result: defragmented blocks lie in their first \
             places, at no cost, and other blocks lie where they were gathered. Only the size is a \
             result, and it depends on the assumptions."
                .to_owned(),
        ],
        figures: vec![figure(
            "35-36",
            "Figures 35 and 36: sequential reads after days of use",
            ("clients", "MB/s"),
            vec![line("defragmented", together), line("fragmented", apart), line("new", young)],
            "The distance between the lines is the cost of fragmentation.",
        )],
    }
}

const FILES: u32 = 40;

/// Writes of 0.8 MiB in the mean that age the files: 80 GB, as much as the files hold.
const DAYS: u64 = 97_000;

const STEP: Duration = Duration::from_secs(5);
