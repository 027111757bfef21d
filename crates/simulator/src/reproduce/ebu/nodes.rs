//! Figures 71 to 74: one node and two, on approach 2.

use super::super::Report;
use super::node::Node;
use super::{ASSUMED, Claims, FILE, approach_2, figure, latency, line, mix, step, total};
use std::time::Duration;

/// By clients: all together in MB/s, and the mean latency in ms. Clients are dealt out to the nodes, which
/// share nothing: half of them on one is what one of two nodes gives.
fn ramp(profile: &str, nodes: u32) -> Vec<(f64, f64, f64)> {
    let mut node = Node::new(&approach_2(), FILES, FILE);
    let mix = mix(profile, FILES, true);
    let of = |clients: u32| {
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
            "two nodes give more, up to 2.3 times",
            format!(
                "up to {most:.1} times: {:.0} MB/s {word} by 40 clients, {:.0}",
                one[9].1, two[9].1
            ),
            most > 1.5,
        );
        claims.add(
            rates,
            "the more clients, the more they gain",
            format!("{:.1} times with 4 clients, {:.1} with 40", gains[0], gains[9]),
            gains[9] > gains[0],
        );
        claims.add(
            times,
            "latency is lower with two: 54 ms instead of 71 ms with 40 clients",
            format!("{:.2} ms, {:.2}", one[9].2, two[9].2),
            two[9].2 < one[9].2 * 0.98,
        );
        let rate = |of: &[(f64, f64, f64)]| of.iter().map(|(x, rate, _)| (*x, *rate)).collect();
        let time = |of: &[(f64, f64, f64)]| of.iter().map(|(x, _, time)| (*x, *time)).collect();
        let (rate_name, time_name) = if number == 1 { ("71", "72") } else { ("73", "74") };
        figures.push(figure(
            rate_name,
            &format!("Figure {rates}: all together, {word}"),
            ("clients", "MB/s"),
            vec![line("one node", rate(&one)), line("two nodes", rate(&two))],
            "Where the lines part, one node is at its end.",
        ));
        figures.push(figure(
            time_name,
            &format!("Figure {times}: latency"),
            ("clients", "ms"),
            vec![line("one node", time(&one)), line("two nodes", time(&two))],
            "Opening files, behind data that stands in line.",
        ));
        progress(f64::from(number) / 2.0);
    }
    Report {
        source: "EBU TECH 3362, section 7.5, figures 71 to 74",
        method: format!(
            "Sequential reads and writes in blocks of 1 MB, clients on files of their own dealt \
            out to one node and to two of approach 2, each with its link. {ASSUMED}"
        ),
        tables: vec![claims.0],
        notes: vec![
            "Opening a file waits behind data that goes to clients, and nothing else: with writes alone \
             the line is free, and latency is what three round trips take, on one node and on two."
                .to_owned(),
        ],
        figures,
    }
}

const FILES: u32 = 40;

const STEP: Duration = Duration::from_secs(5);
