//! Figures 51 and 52 (approach 1), 75 and 76 (approach 2): the longest latency by the number of
//! clients.

use super::super::Report;
use super::files::{PROFILE, STEP, drawn};
use super::{Claims, Ramp, TIMES, approach_1, approach_2, figure, report};
use meter::transfers::{TransferRow, TransfersOutcome};

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let ramps = [approach_1(), approach_2()].map(|build| {
        [Ramp::one_file(&build, PROFILE, true, STEP), Ramp::own_files(&build, PROFILE, STEP)]
    });
    progress(1.0);
    let [[one_1, many_1], [one_2, many_2]] = &ramps;
    let mut claims = Claims::of("ebu-peaks");
    for (place, ramp) in [("51", one_1), ("52", many_1), ("75", one_2), ("76", many_2)] {
        let (first, last) = (ramp.first(longest), ramp.last(longest));
        let ours = format!("{first:.1} ms with the fewest clients, {last:.1} with the most");
        claims.add(place, ours, last > first, None);
    }
    let most = |ramp: &Ramp| ramp.values(longest).into_iter().fold(0.0, f64::max);
    for (place, ramp) in [("75", one_2), ("76", many_2)] {
        claims.add(place, "the longest of all steps".to_owned(), None, most(ramp));
    }
    let ours =
        format!("{:.1} ms at most with one file, {:.1} with many", most(one_2), most(many_2));
    claims.add("75, 76", ours, most(many_2) > most(one_2), None);
    report(
        "ebu-peaks",
        claims,
        vec![
            figure("51", TIMES, drawn(one_1, milliseconds)),
            figure("52", TIMES, drawn(many_1, milliseconds)),
            figure("75", TIMES, drawn(one_2, milliseconds)),
            figure("76", TIMES, drawn(many_2, milliseconds)),
        ],
    )
}

/// The longest latency of a transfer, in ms.
fn longest(outcome: &TransfersOutcome) -> f64 {
    milliseconds(&outcome.sum(|_| true))
}

fn milliseconds(row: &TransferRow) -> f64 {
    row.longest_latency.as_secs_f64() * 1e3
}
