//! Figures 67 to 70: reads against writes, edit writes against whole files, on approach 2 and with
//! writes that wait for the disks.

use super::super::Report;
use super::node::Node;
use super::{
    Claims, FILE, FILES, RATES, Ramp, TIMES, approach_2, figure, line, mean_latency, mix, report,
    step, total, written_through,
};
use meter::transfers::{Length, TransferMix, TransfersOutcome};
use std::time::Duration;

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let build = approach_2();
    let reads = Ramp::own_files(&build, "ebu3362-read", STEP);
    progress(0.3);
    let writes = Ramp::own_files(&build, "ebu3362-write", STEP);
    let waiting = Ramp::own_files(&written_through(), "ebu3362-write", STEP);
    progress(0.6);
    let whole_files = TransferMix { length: Length::Whole, ..mix("ebu3362-write", FILES, true) };
    // A fresh node: nothing of the ramps is in its memory.
    let whole = step(&mut Node::new(&build, FILES, FILE), &whole_files, FILES, STEP);
    progress(1.0);
    let (read, edit) = (reads.last(total), writes.last(total));
    let [slow_reads, slow_writes] = [&reads, &writes].map(|ramp| ramp.last(mean_latency));
    let mut claims = Claims::of("ebu-writes");
    let ours = format!("{read:.0} MB/s read by 40 clients, {edit:.0} written");
    claims.add("67", ours, edit < read, None);
    let ours = format!("{read:.0} MB/s read, {:.0} written", waiting.last(total));
    claims.add("67", ours, waiting.last(total) < read, None);
    let ours = format!("{slow_reads:.2} ms of reads, {slow_writes:.2} of writes");
    claims.add("68", ours, slow_writes > slow_reads, None);
    let ours = format!("{:.0} MB/s, {edit:.0}", total(&whole));
    // Complete files cover whole stripes, so that nothing is read before it is written.
    claims.add("69, 70", ours, total(&whole) > edit, None);
    let both =
        |of: fn(&TransfersOutcome) -> f64| vec![reads.line("reads", of), writes.line("writes", of)];
    let seconds = |outcome: &TransfersOutcome| {
        let moved = outcome.seconds.iter().map(|second| second.written.0 as f64 / 1e6);
        (0u32..).map(f64::from).zip(moved).collect()
    };
    report(
        "ebu-writes",
        claims,
        vec![
            figure(
                "67",
                RATES,
                [both(total), vec![waiting.line("writes that wait for the disks", total)]].concat(),
            ),
            figure("68", TIMES, both(mean_latency)),
            figure(
                "69-70",
                ["seconds", "MB/s"],
                vec![
                    line("complete files", seconds(&whole)),
                    line("edit writes", seconds(&writes.0[9].outcome)),
                ],
            ),
        ],
    )
}

const STEP: Duration = Duration::from_secs(5);
