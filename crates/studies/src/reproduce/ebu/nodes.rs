//! Figures 71 to 74: one node and two, on approach 2.

use super::super::Report;
use super::node::Node;
use super::{
    ASSUMED, Claims, Direction, FILE, Size, approach_2, figure, latency, line, mix, step, total,
};
use std::time::Duration;

/// By number of clients: their total rate in MB/s, and the mean latency in ms. Clients are divided
/// equally among the nodes, which share nothing, so one node with half of them is simulated.
fn ramp(profile: &str, nodes: u32) -> Vec<(f64, f64, f64)> {
    let mut node = Node::new(&approach_2(), FILES, FILE);
    let mix = mix(profile, FILES, true);
    let of = |clients: u32| {
        // Nodes share nothing: one with its part of the clients stands for all.
        let outcome = step(&mut node, &mix, clients / nodes, STEP);
        let all = total(&outcome) * f64::from(nodes);
        (f64::from(clients), all, latency(&outcome.sum(|_| true)))
    };
    (1..=10).map(|number| number * 4).map(of).collect()
}

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let kinds = [("ebu3362-read", "read", "71", "72"), ("ebu3362-write", "written", "73", "74")];
    let mut claims = Claims::new();
    let mut figures = Vec::new();
    for (number, (profile, word, rates, times)) in (1u32..).zip(kinds) {
        let (one, two) = (ramp(profile, 1), ramp(profile, 2));
        let gains: Vec<f64> = one.iter().zip(&two).map(|(one, two)| two.1 / one.1).collect();
        let most = gains.iter().copied().fold(0.0, f64::max);
        claims.add(
            rates,
            "two nodes give more, by a factor of up to 2.3",
            format!("{:.0} MB/s {word} by 40 clients, {:.0} with two", one[9].1, two[9].1),
            Direction::Judged(gains.iter().all(|gain| *gain > 1.0)),
            Some(Size::of(2.3, most, 1, " times")),
        );
        claims.direction(
            rates,
            "the more clients, the more they gain",
            format!("{:.2} times with 4 clients, {:.2} with 40", gains[0], gains[9]),
            gains[9] > gains[0],
        );
        claims.add(
            times,
            "latency is lower with two: 54 ms instead of 71 ms with 40 clients",
            format!("{:.2} ms, {:.2} with two", one[9].2, two[9].2),
            Direction::Judged(two[9].2 < one[9].2),
            Some(Size::of(0.76, two[9].2 / one[9].2, 2, " of it")),
        );
        let rate = |of: &[(f64, f64, f64)]| of.iter().map(|(x, rate, _)| (*x, *rate)).collect();
        let time = |of: &[(f64, f64, f64)]| of.iter().map(|(x, _, time)| (*x, *time)).collect();
        let (rate_name, time_name) = if number == 1 { ("71", "72") } else { ("73", "74") };
        figures.push(figure(
            rate_name,
            &format!("Figure {rates}: total rate, {word}"),
            ("clients", "MB/s"),
            vec![line("one node", rate(&one)), line("two nodes", rate(&two))],
            "Where the lines separate, one node is saturated.",
        ));
        figures.push(figure(
            time_name,
            &format!("Figure {times}: latency"),
            ("clients", "ms"),
            vec![line("one node", time(&one)), line("two nodes", time(&two))],
            "Opening files, queued behind data.",
        ));
        progress(f64::from(number) / 2.0);
    }
    Report {
        source: "EBU TECH 3362, section 7.5, figures 71 to 74",
        method: format!(
            "Sequential reads and writes in blocks of 1 MB, with one file per client, on \
            one node and on two of approach 2, each with its link. {ASSUMED}"
        ),
        tables: vec![claims.into_table()],
        notes: vec![
            "Opening a file waits only behind data on its way to clients. With writes alone there is no such \
             data, and the latency is three round trips, with one node and with two."
                .to_owned(),
        ],
        figures,
    }
}

const FILES: u32 = 40;

const STEP: Duration = Duration::from_secs(5);
