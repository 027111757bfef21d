//! Figures 19 to 22: data length, random access and block size, on approach 1.

use super::super::Report;
use super::node::Node;
use super::{ASSUMED, Claims, FILE, approach_1, figure, latency, line, mix, rate, step};
use meter::transfers::{Length, Mix, Outcome};
use std::time::Duration;

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let reads = || Mix { files: FILES, ..mix("ebu3362-read", FILES, true) };
    let on = |mix: &Mix| {
        let mut node = Node::new(&approach_1(), FILES, FILE);
        step(&mut node, mix, FILES, STEP)
    };
    let all = |outcome: &Outcome| outcome.sum(|_| true);
    let mut claims = Claims::new();
    let blocks = [64 << 10, 1 << 20];
    let lengths = [64, 256, 1024, 4096, 10_240].map(|kib: u32| {
        let of = blocks.map(|block| {
            let length = u64::from(kib) << 10;
            let mix = Mix { length: Length::Frames(length, 1), blocks: vec![block], ..reads() };
            let Mix { blocks, .. } = &mix;
            let block = blocks[0].min(kib << 10);
            rate(&all(&on(&Mix { blocks: vec![block], ..mix })))
        });
        (f64::from(kib), of)
    });
    progress(0.4);
    for (number, block) in ["64 KiB", "1 MiB"].iter().enumerate() {
        let (short, long) = (lengths[0].1[number], lengths[4].1[number]);
        claims.add(
            "19",
            "the more data is asked for, the higher the transfer rate",
            format!("{short:.0} MB/s at 64 KiB, {long:.0} at 10 MiB, blocks of {block}"),
            long > short,
        );
    }
    let shares = [0, 10, 25, 50, 75, 100].map(|share: u8| {
        let of = blocks.map(|block| {
            rate(&all(&on(&Mix { random_percent: share, blocks: vec![block], ..reads() })))
        });
        (f64::from(share), of)
    });
    progress(0.8);
    let lost = [0, 1].map(|block: usize| 1.0 - shares[5].1[block] / shares[0].1[block]);
    for (number, block) in ["64 KiB", "1 MiB"].iter().enumerate() {
        let (none, full) = (shares[0].1[number], shares[5].1[number]);
        claims.add(
            "20",
            "the rate drops as access becomes more random",
            format!("{none:.0} MB/s at 0 %, {full:.0} at 100 %, blocks of {block}"),
            full < none,
        );
    }
    claims.add(
        "20",
        "more noticeably with larger blocks",
        format!("{:.0} % lost with 64 KiB, {:.0} % with 1 MiB", lost[0] * 100.0, lost[1] * 100.0),
        lost[1] > lost[0],
    );
    let sizes = [4, 16, 64, 256, 1024].map(|kib: u32| {
        let row = all(&on(&Mix { blocks: vec![kib << 10], ..reads() }));
        (f64::from(kib), rate(&row), latency(&row), f64::from(kib) * FILLING)
    });
    progress(1.0);
    claims.add(
        "21",
        "larger blocks are moved faster",
        format!("{:.0} MB/s at 4 KiB, {:.0} at 1 MiB", sizes[0].1, sizes[4].1),
        sizes.is_sorted_by(|a, b| a.1 < b.1),
    );
    claims.add(
        "22",
        "latency rises with the block size",
        format!("{:.2} ms at 4 KiB, {:.2} at 1 MiB", sizes[0].2, sizes[4].2),
        sizes[4].2 > sizes[0].2 * 1.1,
    );
    claims.add(
        "22",
        "the same, with the time that msMeter itself takes to fill a block (14 ns a byte)",
        format!("{:.2} ms, {:.1} ms", sizes[0].2 + sizes[0].3, sizes[4].2 + sizes[4].3),
        sizes[4].2 + sizes[4].3 > (sizes[0].2 + sizes[0].3) * 1.1,
    );
    let pairs = |of: &[(f64, [f64; 2])], number: usize| {
        of.iter().map(|(x, rates)| (*x, rates[number])).collect()
    };
    let both = |of: &[(f64, [f64; 2])]| {
        vec![line("64 KiB blocks", pairs(of, 0)), line("1 MiB blocks", pairs(of, 1))]
    };
    Report {
        source: "EBU TECH 3362, sections 6.1 and 6.2, figures 19 to 22",
        method: format!("Ten clients read files of their own on approach 1, whose cache is cold. {ASSUMED}"),
        tables: vec![claims.0],
        notes: vec![
            "Latency as the paper defines it is the time of a transfer that is in no block. In its \
             tool that includes filling a buffer byte by byte with rand(), which on its own measures 15 \
             ms for 1 MiB; that rises with the block size by itself, and is most of figure 22."
                .to_owned(),
            "Small blocks lose more by random access here, large ones less, other than in figure 20: a \
             random block of 1 MiB is asked for at once and keeps several disks busy. Where a server reads \
             it in pieces of 64 KiB, one after another, as the paper's may have done, each piece waits for \
             a disk of its own. What its plot shows of the smaller blocks, the text does not say."
                .to_owned(),
        ],
        figures: vec![
            figure("19", "Figure 19: rate by data length", ("KiB", "MB/s"), both(&lengths),
                "A run pays once for coming to its place, and reading ahead begins with it."),
            figure("20", "Figure 20: rate by share of random access", ("% at random", "MB/s"), both(&shares),
                "A random block moves the arms and makes reading ahead stop."),
            figure("21", "Figure 21: rate by block size", ("KiB", "MB/s"),
                vec![line("sequential reads", sizes.map(|size| (size.0, size.1)).into())],
                "Small blocks pay for a round trip each."),
            figure("22", "Figure 22: latency by block size", ("KiB", "ms"),
                vec![
                    line("as defined", sizes.map(|size| (size.0, size.2)).into()),
                    line("with msMeter's filling", sizes.map(|size| (size.0, size.2 + size.3)).into()),
                ],
                "What rises is the tool's own work."),
        ],
    }
}

/// As many clients.
const FILES: u32 = 10;

const STEP: Duration = Duration::from_secs(10);

/// Of msMeter, ms for a KiB: 15 ms for 1 MiB.
const FILLING: f64 = 15.0 / 1024.0;
