//! Figures 23 to 28 (approach 1) and 56 to 59 (approach 2): the edit profile with more and more
//! clients, on one file and on files of their own.

use super::super::Report;
use super::{
    Claims, RATES, Ramp, TIMES, approach_1, approach_2, figure, latency, mean, mean_latency, rate,
    report, row, written_through,
};
use meter::operations::OperationKind;
use meter::report::Series;
use meter::transfers::{TransferRow, TransfersOutcome};
use std::time::Duration;

const KINDS: [(&str, OperationKind, bool); 4] = [
    ("sequential reads", OperationKind::Read, false),
    ("random reads", OperationKind::Read, true),
    ("sequential writes", OperationKind::Write, false),
    ("random writes", OperationKind::Write, true),
];

pub(super) const PROFILE: &str = "ebu3362-edit";
pub(super) const STEP: Duration = Duration::from_secs(10);

/// Rates of a client by number of clients, in MB/s.
pub(super) fn rates(ramp: &Ramp, kind: OperationKind, random: bool) -> Vec<f64> {
    ramp.values(|outcome| rate(&row(outcome, kind, random)))
}

/// Sequential reads of a client by number of clients, in MB/s.
pub(super) fn reads(ramp: &Ramp) -> Vec<f64> {
    rates(ramp, OperationKind::Read, false)
}

/// A line for each kind of transfer.
pub(super) fn drawn(ramp: &Ramp, of: fn(&TransferRow) -> f64) -> Vec<Series> {
    let line = |(name, kind, random)| {
        ramp.line(name, |outcome: &TransfersOutcome| of(&row(outcome, kind, random)))
    };
    KINDS.map(line).into()
}

pub(super) fn middle(values: &[f64]) -> f64 {
    mean(values.iter().copied())
}

/// Figures 23 to 28.
pub(in super::super) fn single(progress: &mut dyn FnMut(f64)) -> Report {
    let build = approach_1();
    let warm = Ramp::one_file(&build, PROFILE, true, STEP);
    progress(0.3);
    let cold = Ramp::one_file(&build, PROFILE, false, STEP);
    progress(0.6);
    let many = Ramp::own_files(&build, PROFILE, STEP);
    progress(1.0);
    let mut claims = Claims::of("ebu-cache");
    let (one, own) = (middle(&reads(&warm)), middle(&reads(&many)));
    claims.add("23, 25", format!("{one:.0} MB/s a client, {own:.0}"), one > own, None);
    // Steps are four clients apart: numbers 0, 6 and 9 have 4, 28 and 40 clients.
    let times = many.values(mean_latency);
    let ours = format!("{:.2} ms at 4, {:.2} at 28, {:.2} at 40", times[0], times[6], times[9]);
    claims.add("26", ours, times[9] - times[6] > times[6] - times[0], None);
    let (cold_reads, warm_reads) = (reads(&cold), reads(&warm));
    let best = cold_reads.iter().copied().fold(0.0, f64::max);
    let ours = format!("{:.0} MB/s in the first step, up to {best:.0}", cold_reads[0]);
    claims.add("27", ours, best > cold_reads[0], None);
    let gained = |steps: std::ops::Range<usize>| cold_reads[steps.end] - cold_reads[steps.start];
    let ours = format!(
        "{:+.0} MB/s in the first three steps, {:+.0} in the last",
        gained(0..3),
        gained(6..9)
    );
    claims.add("27", ours, gained(6..9) < gained(0..3), None);
    let writes = [&cold, &warm].map(|ramp| rates(ramp, OperationKind::Write, false)[0]);
    let ours = format!("{:.0} MB/s, {:.0}", writes[0], writes[1]);
    claims.add("27", ours, None, writes[0] / writes[1]);
    let ours = format!("{:.0} MB/s, {:.0}", cold_reads[9], warm_reads[9]);
    claims.add("23, 27", ours, None, cold_reads[9] / warm_reads[9]);
    report(
        "ebu-cache",
        claims,
        vec![
            figure("23", RATES, drawn(&warm, rate)),
            figure("24", TIMES, drawn(&warm, latency)),
            figure("25", RATES, drawn(&many, rate)),
            figure("26", TIMES, drawn(&many, latency)),
            figure("27", RATES, drawn(&cold, rate)),
            figure("28", TIMES, drawn(&cold, latency)),
        ],
    )
}

/// Figures 56 to 59.
pub(in super::super) fn multi(progress: &mut dyn FnMut(f64)) -> Report {
    let one = Ramp::one_file(&approach_2(), PROFILE, false, STEP);
    progress(0.5);
    let many = Ramp::own_files(&approach_2(), PROFILE, STEP);
    let waiting = [
        Ramp::one_file(&written_through(), PROFILE, false, STEP),
        Ramp::own_files(&written_through(), PROFILE, STEP),
    ];
    progress(1.0);
    let mut claims = Claims::of("ebu-disks");
    for (place, ramp, waiting) in [("56", &one, &waiting[0]), ("58", &many, &waiting[1])] {
        let of = |ramp, kind, random| middle(&rates(ramp, kind, random));
        for ramp in [ramp, waiting] {
            let [reads, writes] =
                [OperationKind::Read, OperationKind::Write].map(|kind| of(ramp, kind, false));
            claims.add(place, format!("{reads:.0} MB/s, {writes:.0}"), reads > writes, None);
        }
        let [reads, random] = [false, true].map(|random| of(ramp, OperationKind::Read, random));
        claims.add(place, format!("{reads:.0} MB/s, {random:.0}"), reads > random, None);
    }
    // Means of three steps at each end, because random places make a single step vary.
    let dropped = |ramp: &Ramp| middle(&reads(ramp)[7..]) / middle(&reads(ramp)[..3]);
    let ours = format!(
        "{:.0} % of the rate at the beginning is left in the end, {:.0} % with one",
        dropped(&many) * 100.0,
        dropped(&one) * 100.0
    );
    claims.add("56, 58", ours, dropped(&many) < dropped(&one), None);
    let grown = |ramp: &Ramp| ramp.last(mean_latency) / ramp.first(mean_latency) - 1.0;
    let ours = format!(
        "{:+.0} % with one file, {:+.0} % with many",
        grown(&one) * 100.0,
        grown(&many) * 100.0
    );
    claims.add("57, 59", ours, grown(&one) > 0.0 && grown(&many) > grown(&one), None);
    let ours = format!(
        "{:.2} ms at 4 clients, {:.2} at 40",
        many.first(mean_latency),
        many.last(mean_latency)
    );
    claims.add("57, 59", ours, None, grown(&many) * 100.0);
    report(
        "ebu-disks",
        claims,
        vec![
            figure("56", RATES, drawn(&one, rate)),
            figure("57", TIMES, drawn(&one, latency)),
            figure("58", RATES, drawn(&many, rate)),
            figure("59", TIMES, drawn(&many, latency)),
        ],
    )
}
