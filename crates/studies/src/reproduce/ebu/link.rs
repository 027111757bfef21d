//! Figures 47 to 50: sequential reads over a link of 1 and of 10 Gb/s, on approach 1.

use super::super::Report;
use super::node::{Build, Node};
use super::{
    ASSUMED, Claims, Direction, FILE, Size, approach_1, figure, gigabit, latency, line, mix, step,
    total,
};
use std::time::Duration;

/// By clients: all together in MB/s, and the mean latency in ms.
type LinkRamp = Vec<(f64, f64, f64)>;

fn reads(gigabits: u64, own: bool) -> LinkRamp {
    let build = Build { link: gigabit(gigabits), ..approach_1() };
    let (files, by) = if own { (40, 4) } else { (1, 1) };
    let mut node = Node::new(&build, files, FILE);
    if !own {
        node.warm(0);
    }
    let mix = mix("ebu3362-read", files, own);
    let of = |clients| {
        let outcome = step(&mut node, &mix, clients, STEP);
        (f64::from(clients), total(&outcome), latency(&outcome.sum(|_| true)))
    };
    (1..=10).map(|number| number * by).map(of).collect()
}

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let (one_1, one_10) = (reads(1, false), reads(10, false));
    progress(0.5);
    let (many_1, many_10) = (reads(1, true), reads(10, true));
    progress(1.0);
    let last = |line: &LinkRamp| line[9];
    let mut claims = Claims::new();
    let gain = last(&one_10).1 / last(&one_1).1;
    claims.add(
        "47",
        "10 GbE is faster than 1 GbE, by roughly 50 %",
        format!("{:.0} MB/s, {:.0} at 10 GbE", last(&one_1).1, last(&one_10).1),
        Direction::Judged(gain > 1.0),
        Some(Size::of(1.5, gain, 1, " times")),
    );
    claims.add(
        "47",
        "10 GbE is limited at approximately 250 MB/s",
        "with ten clients".to_owned(),
        Direction::NotStated,
        Some(Size::of(250.0, last(&one_10).1, 0, " MB/s")),
    );
    claims.direction(
        "48",
        "latency rises with clients",
        format!("{:.2} ms with one, {:.2} with ten (1 GbE)", one_1[0].2, last(&one_1).2),
        last(&one_1).2 > one_1[0].2 && last(&one_10).2 > one_10[0].2,
    );
    let slower = last(&one_1).2 / last(&one_10).2;
    claims.add(
        "48",
        "latency is higher at 1 GbE, by approximately 50 %",
        format!("{:.2} ms, {:.2} at 10 GbE", last(&one_1).2, last(&one_10).2),
        Direction::Judged(slower > 1.0),
        Some(Size::of(1.5, slower, 1, " times")),
    );
    claims.add(
        "49",
        "with many files 1 GbE is full almost at once, at approximately 150 MB/s",
        format!("{:.0} MB/s with 4 clients, {:.0} with 8", many_1[0].1, many_1[1].1),
        Direction::Judged(many_1[1].1 >= 0.99 * last(&many_1).1),
        Some(Size::of(150.0, last(&many_1).1, 0, " MB/s")),
    );
    claims.direction(
        "49",
        "with many files 10 GbE moves more than with one",
        format!("{:.0} MB/s, {:.0} with one", last(&many_10).1, last(&one_10).1),
        last(&many_10).1 > last(&one_10).1,
    );
    let higher = last(&many_1).2 / last(&one_1).2;
    claims.add(
        "48, 50",
        "with many files latency is three times as high",
        format!("{:.2} ms, {:.2} with one (1 GbE)", last(&many_1).2, last(&one_1).2),
        Direction::Judged(higher > 1.0),
        Some(Size::of(3.0, higher, 0, " times")),
    );
    let points = |of: &LinkRamp, latency: bool| {
        of.iter().map(|(x, rate, time)| (*x, if latency { *time } else { *rate })).collect()
    };
    let both = |one: &LinkRamp, ten: &LinkRamp, latency| {
        vec![line("1 GbE", points(one, latency)), line("10 GbE", points(ten, latency))]
    };
    let (rates, times) = (("clients", "MB/s"), ("clients", "ms"));
    Report {
        source: "EBU TECH 3362, section 6.11, figures 47 to 50",
        method: format!("Sequential reads in blocks of 1 MB: of one file that is in the cache, and of files \
            of their own, on approach 1. {ASSUMED}"),
        tables: vec![claims.into_table()],
        notes: vec![
            "The paper's 10 GbE was limited to 250 MB/s by clients that could not scale the TCP window, as \
             it found later (sections 6.13 and 7.2); with other clients it was 620 MB/s. TCP is not \
             simulated: `meter study network` measures the effect of a small window."
                .to_owned(),
            "A link of 1 Gb/s carries 125 MB/s one way. The paper does not explain its 150 MB/s."
                .to_owned(),
        ],
        figures: vec![
            figure("47", "Figure 47: one file", rates, both(&one_1, &one_10, false), "Where the line is level the link is saturated."),
            figure("48", "Figure 48: its latency", times, both(&one_1, &one_10, true), "Queueing for the link."),
            figure("49", "Figure 49: files of their own", rates, both(&many_1, &many_10, false), "Where the line is level link or disks are saturated."),
            figure("50", "Figure 50: their latency", times, both(&many_1, &many_10, true), "Queueing for the link."),
        ],
    }
}

const STEP: Duration = Duration::from_secs(5);
