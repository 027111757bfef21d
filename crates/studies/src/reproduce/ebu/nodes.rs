//! Figures 71 to 74: one node and two, on approach 2.

use super::super::Report;
use super::node::Node;
use super::{
    Claims, FILE, FILES, RATES, Ramp, TIMES, approach_2, figure, line, mean_latency, mix, report,
    total,
};
use std::time::Duration;

/// Results of four to forty clients, divided equally among some nodes.
struct Shared {
    /// Total rates in MB/s.
    rates: Vec<f64>,
    /// Mean latencies in ms.
    times: Vec<f64>,
}

impl Shared {
    /// Nodes share nothing: one with its part of the clients stands for all.
    fn new(profile: &str, nodes: u32) -> Self {
        let (node, mix) = (Node::new(&approach_2(), FILES, FILE), mix(profile, FILES, true));
        let clients = (4..=FILES).step_by(4).map(|clients| clients / nodes);
        let ramp = Ramp::new(node, &mix, clients, STEP);
        let rates = ramp.values(|outcome| total(outcome) * f64::from(nodes));
        Self { rates, times: ramp.values(mean_latency) }
    }
}

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let kinds = [("ebu3362-read", "read", "71", "72"), ("ebu3362-write", "written", "73", "74")];
    let mut claims = Claims::of("ebu-nodes");
    let mut figures = Vec::new();
    for (number, (profile, word, rates, times)) in (1u32..).zip(kinds) {
        let (one, two) = (Shared::new(profile, 1), Shared::new(profile, 2));
        let gains: Vec<f64> =
            two.rates.iter().zip(&one.rates).map(|(two, one)| two / one).collect();
        // The report states the largest gain of all steps; the direction must hold at each.
        let most = gains.iter().copied().fold(0.0, f64::max);
        let ours =
            format!("{:.0} MB/s {word} by 40 clients, {:.0} with two", one.rates[9], two.rates[9]);
        claims.add(rates, ours, gains.iter().all(|gain| *gain > 1.0), most);
        let ours = format!("{:.2} times with 4 clients, {:.2} with 40", gains[0], gains[9]);
        claims.add(rates, ours, gains[9] > gains[0], None);
        let ours = format!("{:.2} ms, {:.2} with two", one.times[9], two.times[9]);
        claims.add(times, ours, two.times[9] < one.times[9], two.times[9] / one.times[9]);
        let points = |values| (1..).map(|step| f64::from(4 * step)).zip(values).collect();
        let both = |one, two| vec![line("one node", points(one)), line("two nodes", points(two))];
        figures.push(figure(rates, RATES, both(one.rates, two.rates)));
        figures.push(figure(times, TIMES, both(one.times, two.times)));
        progress(f64::from(number) / 2.0);
    }
    report("ebu-nodes", claims, figures)
}

const STEP: Duration = Duration::from_secs(5);
