//! Figures 47 to 50: sequential reads over a link of 1 and of 10 Gb/s, on approach 1.

use super::super::Report;
use super::node::Build;
use super::{Claims, RATES, Ramp, TIMES, approach_1, figure, gigabit, mean_latency, report, total};
use meter::report::Series;
use meter::transfers::TransfersOutcome;
use std::time::Duration;

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let linked = |gigabits| Build { link: gigabit(gigabits), ..approach_1() };
    let [one_1, one_10] = [1, 10].map(|link| Ramp::one_file(&linked(link), PROFILE, true, STEP));
    progress(0.5);
    let [many_1, many_10] = [1, 10].map(|link| Ramp::own_files(&linked(link), PROFILE, STEP));
    progress(1.0);
    let mut claims = Claims::of("ebu-link");
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
            figure(
                "47",
                "one file",
                RATES,
                both(&one_1, &one_10, total),
                "Where the line is level the link is saturated.",
            ),
            figure(
                "48",
                "its latency",
                TIMES,
                both(&one_1, &one_10, mean_latency),
                "Queueing for the link.",
            ),
            figure(
                "49",
                "files of their own",
                RATES,
                both(&many_1, &many_10, total),
                "Where the line is level link or disks are saturated.",
            ),
            figure(
                "50",
                "their latency",
                TIMES,
                both(&many_1, &many_10, mean_latency),
                "Queueing for the link.",
            ),
        ],
    )
}

fn both(one: &Ramp, ten: &Ramp, of: fn(&TransfersOutcome) -> f64) -> Vec<Series> {
    vec![one.line("1 GbE", of), ten.line("10 GbE", of)]
}

const PROFILE: &str = "ebu3362-read";
const STEP: Duration = Duration::from_secs(5);
