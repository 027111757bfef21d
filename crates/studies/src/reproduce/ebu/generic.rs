//! Figures 77 to 80: generic storage of eight SATA disks, beside approach 1 and approach 2.

use super::super::Report;
use super::files::{PROFILE, STEP, drawn, middle, reads};
use super::{
    Claims, RATES, Ramp, TIMES, approach_1, approach_2, figure, generic_build, latency,
    mean_latency, rate, report, total,
};

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let ramps = [approach_1(), approach_2(), generic_build()].map(|build| {
        [Ramp::one_file(&build, PROFILE, true, STEP), Ramp::own_files(&build, PROFILE, STEP)]
    });
    progress(1.0);
    let [[one_1, many_1], [one_2, many_2], [one, many]] = &ramps;
    let mut claims = Claims::of("ebu-generic");
    let read = |ramp: &Ramp| middle(&reads(ramp));
    let lower = |ramp, than| read(than) / read(ramp);
    for (place, ramp, than) in
        [("77", one, one_1), ("77", one, one_2), ("79", many, many_1), ("79", many, many_2)]
    {
        let ours = format!("{:.0} MB/s a client, {:.0}", read(ramp), read(than));
        claims.add(place, ours, lower(ramp, than) > 1.0, lower(ramp, than));
    }
    let grown = |ramp: &Ramp| ramp.last(mean_latency) / ramp.first(mean_latency);
    let ours = format!("{:.1} times with 40 clients, {:.1}", grown(many), grown(many_2));
    claims.add("80", ours, grown(many) > grown(many_2), None);
    let scales = |ramp: &Ramp| ramp.last(total) / ramp.first(total);
    let ours = format!("{:.1} times as much with 40, {:.1}", scales(many), scales(many_2));
    claims.add("79", ours, scales(many) < scales(many_2), None);
    report(
        "ebu-generic",
        claims,
        vec![
            figure("77", RATES, drawn(one, rate)),
            figure("78", TIMES, drawn(one, latency)),
            figure("79", RATES, drawn(many, rate)),
            figure("80", TIMES, drawn(many, latency)),
        ],
    )
}
