//! Figures 64 to 66: approach 2 by the second, with 28 and with 36 clients that read files of their
//! own.

use super::super::Report;
use super::node::Node;
use super::{Claims, FILE, FILES, approach_2, figure, line, mean, mix, report, step};
use meter::report::Series;
use meter::transfers::{PerSecond, TransfersOutcome};
use std::time::Duration;

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let mix = mix("ebu3362-read", FILES, true);
    let run = |clients| step(&mut Node::new(&approach_2(), FILES, FILE), &mix, clients, LENGTH);
    let runs = [28, 36].map(run);
    progress(1.0);
    let [few, many] = &runs;
    let mut claims = Claims::of("ebu-clients");
    let level = |run| mean(values(run, read).into_iter());
    let ours = format!("{:.0} MB/s in the mean", level(few));
    claims.add("64", ours, None, level(few));
    let ours = format!("{:.0} MB/s with 28, {:.0} with 36", level(few), level(many));
    claims.add("64, 65", ours, level(many) < level(few), None);
    let ours =
        format!("{:.1} % from second to second with 28, {:.1} with 36", varies(few), varies(many));
    claims.add("64, 65", ours, varies(many) > varies(few), None);
    let slowest = |run| mean(values(run, longest).into_iter());
    let ours = format!("{:.0} ms with 28, {:.0} with 36", slowest(few), slowest(many));
    claims.add("66", ours, slowest(many) > slowest(few), None);
    let drawn = |of: fn(&PerSecond) -> f64| -> Vec<Series> {
        let points = |run| (0u32..).map(f64::from).zip(values(run, of)).collect();
        vec![line("28 clients", points(few)), line("36 clients", points(many))]
    };
    let (rates, times) = (["seconds", "MB/s"], ["seconds", "ms"]);
    report(
        "ebu-clients",
        claims,
        vec![figure("64-65", rates, drawn(read)), figure("66", times, drawn(longest))],
    )
}

fn read(second: &PerSecond) -> f64 {
    second.read.0 as f64 / 1e6
}

fn longest(second: &PerSecond) -> f64 {
    second.longest.as_secs_f64() * 1e3
}

/// A value of each second; the first and the last are not whole.
fn values(run: &TransfersOutcome, of: fn(&PerSecond) -> f64) -> Vec<f64> {
    let whole = run.seconds.len().saturating_sub(1);
    run.seconds[..whole].iter().skip(1).map(of).collect()
}

/// Standard deviation of the rate of a second, in percent of its mean.
fn varies(run: &TransfersOutcome) -> f64 {
    let rates = values(run, read);
    let middle = mean(rates.iter().copied());
    100.0 * mean(rates.iter().map(|rate| (rate - middle).powi(2))).sqrt() / middle
}

const LENGTH: Duration = Duration::from_secs(20);
