//! Figures 39 to 42: approach 1 with 23 SAS disks, and with 68 Near Line SAS disks.

use super::super::Report;
use super::array::Raid;
use super::files::{PROFILE, STEP, middle, reads};
use super::node::Build;
use super::{Claims, RATES, Ramp, TIMES, approach_1, figure, mean_latency, report, row, scaled};
use meter::operations::OperationKind;
use meter::report::Series;
use meter::transfers::TransfersOutcome;

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    // A cache would hide the disks.
    let sas = Build { cache: 0, ..approach_1() };
    let near_line = Build { disk: scaled(include_str!("nl-sas.toml"), 50), ..sas.clone() };
    let wide = Raid { groups: 4, data: 15, ..sas.raid };
    let builds = [sas, Build { raid: wide, ..near_line.clone() }, near_line];
    let ramps = builds.map(|build| Ramp::own_files(&build, PROFILE, STEP));
    progress(1.0);
    let [sas, wide, same] = &ramps;
    let mut claims = Claims::of("ebu-sas");
    let rate = |ramp: &Ramp| middle(&reads(ramp));
    let ours = format!("{:.0} MB/s a client with 23, {:.0} with 68", rate(sas), rate(wide));
    claims.add("39, 41", ours, similar(rate(sas), rate(wide)), None);
    let latency = |ramp: &Ramp| middle(&ramp.values(mean_latency));
    let ours = format!("{:.2} ms, {:.2}", latency(sas), latency(wide));
    claims.add("40, 42", ours, similar(latency(sas), latency(wide)), None);
    let ours = format!("{:.0} MB/s a client with 23 of each, {:.0}", rate(sas), rate(same));
    claims.add("39, 41", ours, rate(sas) > rate(same), None);
    let drawn = |of: fn(&TransfersOutcome) -> f64| -> Vec<Series> {
        let names = ["23 SAS", "68 Near Line SAS", "23 Near Line SAS"];
        names.iter().zip(&ramps).map(|(name, ramp)| ramp.line(name, of)).collect()
    };
    let reading =
        |outcome: &TransfersOutcome| super::rate(&row(outcome, OperationKind::Read, false));
    report(
        "ebu-sas",
        claims,
        vec![figure("39-41", RATES, drawn(reading)), figure("40-42", TIMES, drawn(mean_latency))],
    )
}

/// Within a quarter of each other: closer than two plots side by side show.
fn similar(one: f64, other: f64) -> bool {
    (0.8..=1.25).contains(&(one / other))
}
