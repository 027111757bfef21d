//! Figures 67 to 70: reads against writes, edit writes against whole files, on approach 2.

use super::super::Report;
use super::node::Node;
use super::{ASSUMED, Claims, FILE, approach_2, figure, latency, line, mix, step, total};
use meter::transfers::{Length, Mix, Outcome};
use std::time::Duration;

fn ramp(mix: &Mix) -> Vec<(f64, Outcome)> {
    let mut node = Node::new(&approach_2(), FILES, FILE);
    let of = |clients| (f64::from(clients), step(&mut node, mix, clients, STEP));
    (1..=10).map(|number| number * 4).map(of).collect()
}

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let reads = ramp(&mix("ebu3362-read", FILES, true));
    progress(0.3);
    let writes = ramp(&mix("ebu3362-write", FILES, true));
    progress(0.6);
    let whole = Mix { length: Length::Whole, ..mix("ebu3362-write", FILES, true) };
    let mut node = Node::new(&approach_2(), FILES, FILE);
    let whole = step(&mut node, &whole, FILES, STEP);
    progress(1.0);
    let (read, edit) = (total(&reads[9].1), total(&writes[9].1));
    let mut claims = Claims::new();
    claims.add(
        "67",
        "writing is slower than reading",
        format!("{read:.0} MB/s read by 40 clients, {edit:.0} written"),
        edit < read,
    );
    let slow = |ramp: &[(f64, Outcome)]| latency(&ramp[9].1.sum(|_| true));
    claims.add(
        "68",
        "with 28 to 40 clients latency of writes is slightly higher",
        format!("{:.2} ms of reads, {:.2} of writes", slow(&reads), slow(&writes)),
        slow(&writes) > slow(&reads),
    );
    claims.add(
        "69, 70",
        "40 clients that write complete files are faster than 40 that write as editors do",
        format!("{:.0} MB/s, {edit:.0}", total(&whole)),
        total(&whole) > edit,
    );
    let points = |ramp: &[(f64, Outcome)], of: fn(&Outcome) -> f64| {
        ramp.iter().map(|(x, outcome)| (*x, of(outcome))).collect()
    };
    let time = |outcome: &Outcome| latency(&outcome.sum(|_| true));
    let seconds = |outcome: &Outcome| {
        let moved = outcome.seconds.iter().map(|second| second.written.0 as f64 / 1e6);
        (0u32..).map(f64::from).zip(moved).collect()
    };
    Report {
        source: "EBU TECH 3362, section 7.4, figures 67 to 70",
        method: format!(
            "Sequential reads and writes in blocks of 1 MB, each client with a file of its own, on \
            approach 2; and 40 clients that write over all of their files. {ASSUMED}"
        ),
        tables: vec![claims.0],
        notes: vec![
            "Writing is faster than reading here: a run is gathered into whole stripes in memory, so that \
             only its ends are read before they are written, and reading ahead fetches what is never \
             asked for. The paper's storage did not gain from its memory as much; it does not say how much \
             of that there is."
                .to_owned(),
            "Opening a file to write waits behind nothing here; the paper's latency of writes was that of \
             a tool that makes its data meanwhile."
                .to_owned(),
        ],
        figures: vec![
            figure(
                "67",
                "Figure 67: all together",
                ("clients", "MB/s"),
                vec![line("reads", points(&reads, total)), line("writes", points(&writes, total))],
                "A write that covers a part of a stripe reads what it changes first.",
            ),
            figure(
                "68",
                "Figure 68: latency",
                ("clients", "ms"),
                vec![line("reads", points(&reads, time)), line("writes", points(&writes, time))],
                "Opening files, behind data that stands in line.",
            ),
            figure(
                "69-70",
                "Figures 69 and 70: 40 clients",
                ("seconds", "MB/s"),
                vec![
                    line("complete files", seconds(&whole)),
                    line("edit writes", seconds(&writes[9].1)),
                ],
                "What was done in each second. The first is what fits in memory.",
            ),
        ],
    }
}

const FILES: u32 = 40;

const STEP: Duration = Duration::from_secs(5);
