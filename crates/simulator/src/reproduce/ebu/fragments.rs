//! Figures 35 and 36: files after days of edit writes, put together again or not, on approach 1.

use super::super::Report;
use super::node::{Build, Landing, Node};
use super::{ASSUMED, Claims, FILE, approach_1, figure, line, mean, mix, rate, row, step};
use meter::log::Kind;
use std::time::Duration;

/// Sequential reads of a client, in MB/s, by clients; after so many writes.
fn reads(landing: Landing, writes: u64) -> Vec<(f64, f64)> {
    let build = Build { landing, cache: 0, ..approach_1() };
    let mut node = Node::new(&build, FILES, FILE);
    node.age(writes, build.write_room / u64::from(FILES), 1);
    let mix = mix("ebu3362-edit", FILES, true);
    let of = |clients| {
        let outcome = step(&mut node, &mix, clients, STEP);
        (f64::from(clients), rate(&row(&outcome, Kind::Read, false)))
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
        "without putting blocks together again reading is slower after days of use, by 24 MB/s",
        format!(
            "{with:.1} MB/s a client with it, {without:.1} without: {:.1} less",
            with - without
        ),
        without < with * 0.95,
    );
    claims.add(
        "36",
        "it becomes slower over time",
        format!("{new:.1} MB/s at first, {without:.1} in the end"),
        without < new * 0.95,
    );
    Report {
        source: "EBU TECH 3362, section 6.7, figures 35 and 36",
        method: format!("The edit profile on files of their own, on approach 1 without its cache (a cache \
            hides what lies behind it), after so many edit writes that as much was written as there is. {ASSUMED}"),
        tables: vec![claims.0],
        notes: vec![
            "What is gathered when it is written is apart when it is read: that is all that makes \
             fragments here. Writes are gathered in what memory has room for of each client. Putting together costs nothing here, and something in truth, as the paper says."
                .to_owned(),
        ],
        figures: vec![figure(
            "35-36",
            "Figures 35 and 36: sequential reads after days of use",
            ("clients", "MB/s"),
            vec![
                line("put together", together),
                line("not", apart),
                line("not, at first", young),
            ],
            "The distance between the lines is what fragments cost.",
        )],
    }
}

const FILES: u32 = 40;

/// Of 0.8 MiB in the mean: once 80 GB.
const DAYS: u64 = 97_000;

const STEP: Duration = Duration::from_secs(5);
