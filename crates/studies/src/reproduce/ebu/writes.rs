//! Figures 67 to 70: reads against writes, edit writes against whole files, on approach 2.

use super::super::Report;
use super::node::Node;
use super::{ASSUMED, Claims, FILE, approach_2, figure, latency, line, mix, step, total};
use meter::transfers::{Length, TransferMix, TransfersOutcome};
use std::time::Duration;

fn ramp(mix: &TransferMix) -> Vec<(f64, TransfersOutcome)> {
    let mut node = Node::new(&approach_2(), FILES, FILE);
    let of = |clients| (f64::from(clients), step(&mut node, mix, clients, STEP));
    (1..=10).map(|number| number * 4).map(of).collect()
}

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let reads = ramp(&mix("ebu3362-read", FILES, true));
    progress(0.3);
    let writes = ramp(&mix("ebu3362-write", FILES, true));
    progress(0.6);
    let whole = TransferMix { length: Length::Whole, ..mix("ebu3362-write", FILES, true) };
    let mut node = Node::new(&approach_2(), FILES, FILE);
    let whole = step(&mut node, &whole, FILES, STEP);
    progress(1.0);
    let (read, edit) = (total(&reads[9].1), total(&writes[9].1));
    let mut claims = Claims::new();
    claims.direction(
        "67",
        "writing is slower than reading",
        format!("{read:.0} MB/s read by 40 clients, {edit:.0} written"),
        edit < read,
    );
    let slow = |ramp: &[(f64, TransfersOutcome)]| latency(&ramp[9].1.sum(|_| true));
    claims.direction(
        "68",
        "with 28 to 40 clients latency of writes is slightly higher",
        format!("{:.2} ms of reads, {:.2} of writes", slow(&reads), slow(&writes)),
        slow(&writes) > slow(&reads),
    );
    claims.direction(
        "69, 70",
        "40 clients that write complete files are faster than 40 that write as editors do",
        format!("{:.0} MB/s, {edit:.0}", total(&whole)),
        total(&whole) > edit,
    );
    let points = |ramp: &[(f64, TransfersOutcome)], of: fn(&TransfersOutcome) -> f64| {
        ramp.iter().map(|(x, outcome)| (*x, of(outcome))).collect()
    };
    let time = |outcome: &TransfersOutcome| latency(&outcome.sum(|_| true));
    let seconds = |outcome: &TransfersOutcome| {
        let moved = outcome.seconds.iter().map(|second| second.written.0 as f64 / 1e6);
        (0u32..).map(f64::from).zip(moved).collect()
    };
    Report {
        source: "EBU TECH 3362, section 7.4, figures 67 to 70",
        method: format!(
            "Sequential reads and writes in blocks of 1 MB, each client with a file of its own, on \
            approach 2; and 40 clients that write over all of their files. {ASSUMED}"
        ),
        tables: vec![claims.into_table()],
        notes: vec![
            "Writing is faster than reading here: a run is gathered into whole stripes in memory, so that \
             only its ends are read before they are written, and read-ahead fetches bytes that are never \
             requested. The paper's storage gained less from its memory, whose size the paper does not \
             state."
                .to_owned(),
            "Opening a file for writing does not queue here. The paper's latency of writes includes the time \
             in which its tool generates the data."
                .to_owned(),
        ],
        figures: vec![
            figure(
                "67",
                "Figure 67: total rate",
                ("clients", "MB/s"),
                vec![line("reads", points(&reads, total)), line("writes", points(&writes, total))],
                "A write that covers a part of a stripe reads what it changes first.",
            ),
            figure(
                "68",
                "Figure 68: latency",
                ("clients", "ms"),
                vec![line("reads", points(&reads, time)), line("writes", points(&writes, time))],
                "Opening files, queued behind data.",
            ),
            figure(
                "69-70",
                "Figures 69 and 70: 40 clients",
                ("seconds", "MB/s"),
                vec![
                    line("complete files", seconds(&whole)),
                    line("edit writes", seconds(&writes[9].1)),
                ],
                "Rate of each second. In the first second the writes fit in memory.",
            ),
        ],
    }
}

const FILES: u32 = 40;

const STEP: Duration = Duration::from_secs(5);
