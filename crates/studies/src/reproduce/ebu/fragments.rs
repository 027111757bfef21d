//! Figures 35 and 36: files after days of edit writes, defragmented or not, on approach 1.

use super::super::Report;
use super::node::{Build, Landing, Node};
use super::{Claims, FILE, FILES, RATES, Ramp, approach_1, figure, mean, mix, rate, report, row};
use meter::operations::OperationKind;
use meter::transfers::TransfersOutcome;
use std::time::Duration;

/// Eight to forty clients, after so many writes.
fn aged(landing: Landing, writes: u64) -> Ramp {
    let build = Build { landing, cache: 0, ..approach_1() };
    let mut node = Node::new(&build, FILES, FILE);
    node.age(writes, build.write_room / u64::from(FILES), 1);
    Ramp::new(node, &mix("ebu3362-edit", FILES, true), (8..=FILES).step_by(8), STEP)
}

/// Sequential reads of a client, in MB/s.
fn reads(outcome: &TransfersOutcome) -> f64 {
    rate(&row(outcome, OperationKind::Read, false))
}

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let together = aged(Landing::Gathered, DAYS);
    progress(0.3);
    let apart = aged(Landing::Scattered, DAYS);
    progress(0.6);
    let young = aged(Landing::Scattered, 0);
    progress(1.0);
    let [with, without, new] =
        [&together, &apart, &young].map(|ramp| mean(ramp.values(reads).into_iter()));
    let mut claims = Claims::of("ebu-fragments");
    let ours = format!("{with:.1} MB/s a client with it, {without:.1} without");
    claims.add("35, 36", ours, None, with - without);
    let ours = format!("{new:.1} MB/s a client at first, {without:.1} in the end");
    claims.add("36", ours, None, None);
    report(
        "ebu-fragments",
        claims,
        vec![figure(
            "35-36",
            RATES,
            vec![
                together.line("defragmented", reads),
                apart.line("fragmented", reads),
                young.line("new", reads),
            ],
        )],
    )
}

/// Writes of 0.8 MiB in the mean that age the files: 80 GB, as much as the files hold.
const DAYS: u64 = 97_000;

const STEP: Duration = Duration::from_secs(5);
