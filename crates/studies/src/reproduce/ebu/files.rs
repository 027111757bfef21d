//! Figures 23 to 28 (approach 1) and 56 to 59 (approach 2): the edit profile with more and more
//! clients, on one file and on files of their own.

use super::super::Report;
use super::node::{Build, Node};
use super::{
    ASSUMED, Claims, Direction, FILE, Size, approach_1, approach_2, figure, latency, line, mean,
    mix, rate, row, step,
};
use meter::log::OperationKind;
use meter::report::Series;
use meter::transfers::TransfersOutcome;
use std::time::Duration;

/// A ramp: numbers of clients, and what came.
type FileRamp = Vec<(u32, TransfersOutcome)>;

const KINDS: [(&str, OperationKind, bool); 4] = [
    ("sequential reads", OperationKind::Read, false),
    ("random reads", OperationKind::Read, true),
    ("sequential writes", OperationKind::Write, false),
    ("random writes", OperationKind::Write, true),
];

/// One to ten clients on one file. `warm`: all of it has been read before.
fn one_file(build: &Build, warm: bool) -> FileRamp {
    let mut node = Node::new(build, 1, FILE);
    if warm {
        node.warm(0);
    }
    let mix = mix("ebu3362-edit", 1, false);
    (1..=10).map(|clients| (clients, step(&mut node, &mix, clients, STEP))).collect()
}

/// Four to forty clients, each with its own.
fn many_files(build: &Build) -> FileRamp {
    let mut node = Node::new(build, 40, FILE);
    let mix = mix("ebu3362-edit", 40, true);
    (1..=10).map(|number| (number * 4, step(&mut node, &mix, number * 4, STEP))).collect()
}

const STEP: Duration = Duration::from_secs(10);

fn rates(ramp: &FileRamp, kind: OperationKind, random: bool) -> Vec<f64> {
    ramp.iter().map(|(_, outcome)| rate(&row(outcome, kind, random))).collect()
}

fn latencies(ramp: &FileRamp) -> Vec<f64> {
    ramp.iter().map(|(_, outcome)| latency(&outcome.sum(|_| true))).collect()
}

fn drawn(
    ramp: &FileRamp,
    of: impl Fn(&TransfersOutcome, OperationKind, bool) -> f64,
) -> Vec<Series> {
    let points = |kind, random| {
        ramp.iter()
            .map(|(clients, outcome)| (f64::from(*clients), of(outcome, kind, random)))
            .collect()
    };
    KINDS.iter().map(|(name, kind, random)| line(name, points(*kind, *random))).collect()
}

fn middle(values: &[f64]) -> f64 {
    mean(values.iter().copied())
}

const AXES: (&str, &str) = ("clients", "MB/s");
const TIMES: (&str, &str) = ("clients", "ms");

/// Figures 23 to 28.
pub(in super::super) fn single(progress: &mut dyn FnMut(f64)) -> Report {
    let warm = one_file(&approach_1(), true);
    progress(0.3);
    let cold = one_file(&approach_1(), false);
    progress(0.6);
    let many = many_files(&approach_1());
    progress(1.0);
    let mut claims = Claims::new();
    let reads = |ramp: &FileRamp| rates(ramp, OperationKind::Read, false);
    let (one, own) = (middle(&reads(&warm)), middle(&reads(&many)));
    claims.direction(
        "23, 25",
        "a cached file is read faster than files on disk",
        format!("{one:.0} MB/s a client, {own:.0}"),
        one > own,
    );
    let times = latencies(&many);
    claims.direction(
        "26",
        "above 28 clients on many files latency rises considerably (there by TCP), more than before",
        format!("{:.2} ms at 4, {:.2} at 28, {:.2} at 40", times[0], times[6], times[9]),
        times[9] - times[6] > times[6] - times[0],
    );
    let (cold_reads, warm_reads) = (reads(&cold), reads(&warm));
    let best = cold_reads.iter().copied().fold(0.0, f64::max);
    claims.direction(
        "27",
        "reading begins slowly and becomes faster as the cache fills",
        format!("{:.0} MB/s in the first step, up to {best:.0}", cold_reads[0]),
        best > cold_reads[0],
    );
    let gained = |steps: std::ops::Range<usize>| cold_reads[steps.end] - cold_reads[steps.start];
    claims.direction(
        "27",
        "then it levels off: the last steps gain less than the first",
        format!(
            "{:+.0} MB/s in the first three steps, {:+.0} in the last",
            gained(0..3),
            gained(6..9)
        ),
        gained(6..9) < gained(0..3),
    );
    let writes = [&cold, &warm].map(|ramp| rates(ramp, OperationKind::Write, false)[0]);
    claims.add(
        "27",
        "writing is as fast as with a warm cache",
        format!("{:.0} MB/s, {:.0}", writes[0], writes[1]),
        Direction::NotStated,
        Some(Size::of(1.0, writes[0] / writes[1], 1, " times")),
    );
    claims.add(
        "23, 27",
        "in the end it is as fast as a cache that was warm",
        format!("{:.0} MB/s, {:.0}", cold_reads[9], warm_reads[9]),
        Direction::NotStated,
        Some(Size::of(1.0, cold_reads[9] / warm_reads[9], 1, " times")),
    );
    let by_rate = |outcome: &TransfersOutcome, kind, random| rate(&row(outcome, kind, random));
    let by_time = |outcome: &TransfersOutcome, kind, random| latency(&row(outcome, kind, random));
    Report {
        source: "EBU TECH 3362, sections 6.3 and 6.4, figures 23 to 28",
        method: format!("The edit profile (half of it writes, a tenth at random, blocks up to 1 MiB; those of \
            1 MiB are shown) on approach 1, steps of 10 s instead of an hour. {ASSUMED}"),
        tables: vec![claims.into_table()],
        notes: vec![
            "Figure 26's rise above 28 clients was caused by TCP in clients that could not scale the window \
             (section 6.13). A rise here is caused by queues at the links."
                .to_owned(),
        ],
        figures: vec![
            figure("23", "Figure 23: one file that is cached", AXES, drawn(&warm, by_rate), "Memory and network."),
            figure("24", "Figure 24: its latency", TIMES, drawn(&warm, by_time), "Opening the file."),
            figure("25", "Figure 25: files of their own", AXES, drawn(&many, by_rate), "Disks."),
            figure("26", "Figure 26: their latency", TIMES, drawn(&many, by_time), "Opening files."),
            figure("27", "Figure 27: one file, cold", AXES, drawn(&cold, by_rate), "The cache fills from left to right."),
            figure("28", "Figure 28: its latency", TIMES, drawn(&cold, by_time), "Opening the file."),
        ],
    }
}

/// Figures 56 to 59.
pub(in super::super) fn multi(progress: &mut dyn FnMut(f64)) -> Report {
    let one = one_file(&approach_2(), false);
    progress(0.5);
    let many = many_files(&approach_2());
    progress(1.0);
    let mut claims = Claims::new();
    for (place, ramp) in [("56", &one), ("58", &many)] {
        let of = |kind, random| middle(&rates(ramp, kind, random));
        let (reads, writes) = (of(OperationKind::Read, false), of(OperationKind::Write, false));
        claims.direction(
            place,
            "reading is faster than writing",
            format!("{reads:.0} MB/s, {writes:.0}"),
            reads > writes,
        );
        let random = of(OperationKind::Read, true);
        claims.direction(
            place,
            "sequential reads are faster than random ones",
            format!("{reads:.0} MB/s, {random:.0}"),
            reads > random,
        );
    }
    let dropped = |ramp: &FileRamp| {
        let all = rates(ramp, OperationKind::Read, false);
        mean(all[7..].iter().copied()) / mean(all[..3].iter().copied())
    };
    claims.direction(
        "56, 58",
        "with many files the rate drops more quickly",
        format!(
            "{:.0} % of the rate at the beginning is left in the end, {:.0} % with one",
            dropped(&many) * 100.0,
            dropped(&one) * 100.0
        ),
        dropped(&many) < dropped(&one),
    );
    let grown = |ramp: &FileRamp| latencies(ramp)[9] / latencies(ramp)[0] - 1.0;
    claims.direction(
        "57, 59",
        "latency rises slightly with clients, more with many files",
        format!(
            "{:+.0} % with one file, {:+.0} % with many",
            grown(&one) * 100.0,
            grown(&many) * 100.0
        ),
        grown(&one) > 0.0 && grown(&many) > grown(&one),
    );
    claims.add(
        "57, 59",
        "with many files by 8 to 12 %",
        format!("{:.2} ms at 4 clients, {:.2} at 40", latencies(&many)[0], latencies(&many)[9]),
        Direction::NotStated,
        Some(Size::within(8.0, 12.0, grown(&many) * 100.0, " %")),
    );
    let by_rate = |outcome: &TransfersOutcome, kind, random| rate(&row(outcome, kind, random));
    let by_time = |outcome: &TransfersOutcome, kind, random| latency(&row(outcome, kind, random));
    Report {
        source: "EBU TECH 3362, section 7.1, figures 56 to 59",
        method: format!("The edit profile as in ebu-cache, on approach 2. {ASSUMED}"),
        tables: vec![claims.into_table()],
        notes: vec![
            "Writes are faster than reads here because a write is complete when it is in memory, and clients \
             that read half of the time leave the disks time to write. The paper explains its slower \
             writes by parity that is read before it is written (section 7.4) and by clients that \
             generate their data; its storage may have let a write wait for the disks. Writes would \
             wait here too if the write buffer were always full."
                .to_owned(),
        ],
        figures: vec![
            figure(
                "56",
                "Figure 56: one file",
                AXES,
                drawn(&one, by_rate),
                "No cache: disks, from the first client on.",
            ),
            figure(
                "57",
                "Figure 57: its latency",
                TIMES,
                drawn(&one, by_time),
                "Opening the file.",
            ),
            figure(
                "58",
                "Figure 58: files of their own",
                AXES,
                drawn(&many, by_rate),
                "Four times as many clients.",
            ),
            figure(
                "59",
                "Figure 59: their latency",
                TIMES,
                drawn(&many, by_time),
                "Opening files.",
            ),
        ],
    }
}
