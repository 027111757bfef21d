//! Figures 43 to 50: a link of 1 and of 10 Gb/s, on approach 1: the edit profile, and sequential
//! reads.

use super::super::Report;
use super::files::{drawn, middle, rates};
use super::node::Build;
use super::{
    Claims, RATES, Ramp, TIMES, approach_1, figure, gigabit, latency, mean_latency, rate, report,
    total,
};
use meter::operations::OperationKind;
use meter::report::Series;
use meter::transfers::TransfersOutcome;
use std::time::Duration;

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let linked = |gigabits| Build { link: gigabit(gigabits), ..approach_1() };
    let [one_1, one_10] = [1, 10].map(|link| Ramp::one_file(&linked(link), PROFILE, true, STEP));
    progress(0.5);
    let [many_1, many_10] = [1, 10].map(|link| Ramp::own_files(&linked(link), PROFILE, STEP));
    let edits = [1, 10].map(|link| Ramp::own_files(&linked(link), EDIT, STEP));
    progress(1.0);
    let mut claims = Claims::of("ebu-link");
    claim_edits(&mut claims, &edits);
    // The last step has the most clients, where the narrow link is the limit.
    let gain = one_10.last(total) / one_1.last(total);
    let ours = format!("{:.0} MB/s, {:.0} at 10 GbE", one_1.last(total), one_10.last(total));
    claims.add("47", ours, gain > 1.0, gain);
    claims.add("47", "with ten clients".to_owned(), None, one_10.last(total));
    let ours = format!(
        "{:.2} ms with one, {:.2} with ten (1 GbE)",
        one_1.first(mean_latency),
        one_1.last(mean_latency)
    );
    claims.add(
        "48",
        ours,
        one_1.last(mean_latency) > one_1.first(mean_latency)
            && one_10.last(mean_latency) > one_10.first(mean_latency),
        None,
    );
    let slower = one_1.last(mean_latency) / one_10.last(mean_latency);
    let ours =
        format!("{:.2} ms, {:.2} at 10 GbE", one_1.last(mean_latency), one_10.last(mean_latency));
    claims.add("48", ours, slower > 1.0, slower);
    // The second step has eight clients: the report says that the link is full from there on, so
    // nothing may be gained later.
    let full = total(&many_1.0[1].outcome);
    let ours = format!("{:.0} MB/s with 4 clients, {:.0} with 8", many_1.first(total), full);
    claims.add("49", ours, full >= 0.99 * many_1.last(total), many_1.last(total));
    let ours = format!("{:.0} MB/s, {:.0} with one", many_10.last(total), one_10.last(total));
    claims.add("49", ours, many_10.last(total) > one_10.last(total), None);
    let higher = many_1.last(mean_latency) / one_1.last(mean_latency);
    let ours = format!(
        "{:.2} ms, {:.2} with one (1 GbE)",
        many_1.last(mean_latency),
        one_1.last(mean_latency)
    );
    claims.add("48, 50", ours, higher > 1.0, higher);
    report(
        "ebu-link",
        claims,
        vec![
            figure("43", RATES, drawn(&edits[0], rate)),
            figure("44", RATES, drawn(&edits[1], rate)),
            figure("45", TIMES, drawn(&edits[0], latency)),
            figure("46", TIMES, drawn(&edits[1], latency)),
            figure("47", RATES, both(&one_1, &one_10, total)),
            figure("48", TIMES, both(&one_1, &one_10, mean_latency)),
            figure("49", RATES, both(&many_1, &many_10, total)),
            figure("50", TIMES, both(&many_1, &many_10, mean_latency)),
        ],
    )
}

/// Figures 43 to 46.
fn claim_edits(claims: &mut Claims, [narrow, wide]: &[Ramp; 2]) {
    for (kind, similar) in [(OperationKind::Read, true), (OperationKind::Write, false)] {
        let [narrow, wide] = [narrow, wide].map(|ramp| middle(&rates(ramp, kind, false)));
        let ours = format!("{narrow:.0} MB/s a client, {wide:.0} at 10 GbE");
        claims.add("43, 44", ours, (narrow > 0.8 * wide) == similar, None);
    }
    let [narrow, wide] = [narrow, wide].map(|ramp| middle(&ramp.values(mean_latency)));
    let ours = format!("{narrow:.2} ms, {wide:.2} at 10 GbE");
    claims.add("45, 46", ours, narrow < 1.25 * wide, None);
}

fn both(one: &Ramp, ten: &Ramp, of: fn(&TransfersOutcome) -> f64) -> Vec<Series> {
    vec![one.line("1 GbE", of), ten.line("10 GbE", of)]
}

const PROFILE: &str = "ebu3362-read";
const EDIT: &str = "ebu3362-edit";
const STEP: Duration = Duration::from_secs(5);
