//! Figures 19 to 22: data length, random access and block size, on approach 1.

use super::super::{Report, Table};
use super::node::{Build, Node};
use super::{Claims, FILE, approach_1, figure, latency, line, mix, rate, report, step};
use meter::report::{Figure, cell};
use meter::transfers::{Length, TransferMix, TransferRow};
use std::time::Duration;

/// A figure's line for each of [`BLOCKS`]: what is varied, and MB/s of a client.
type ByBlock = Vec<(f64, [f64; 2])>;

/// Sizes of a block that are compared, in bytes, and their names.
const BLOCKS: [u32; 2] = [64 << 10, 1 << 20];
const BLOCK_NAMES: [&str; 2] = ["64 KiB", "1 MiB"];

/// Reads in blocks of one size.
struct BySize {
    kib: f64,
    /// MB/s of a client.
    rate: f64,
    /// Latency as the paper defines it, ms.
    latency: f64,
    /// Latency with the time that msMeter takes to fill a block, ms.
    with_filling: f64,
}

pub(in super::super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let lengths = by_length();
    progress(0.4);
    let shares = by_random_share();
    progress(0.7);
    let sizes = by_block_size();
    progress(0.8);
    let split = in_parts();
    progress(1.0);
    let mut claims = Claims::of("ebu-profile");
    claim_lengths(&mut claims, &lengths);
    claim_shares(&mut claims, &shares);
    claim_sizes(&mut claims, &sizes);
    let mut report = report("ebu-profile", claims, figures(&lengths, &shares, &sizes));
    report.tables.push(split);
    report
}

/// What ten clients get who read like this, each from a file of its own.
fn read(change: impl FnOnce(&mut TransferMix)) -> TransferRow {
    read_from(&approach_1(), change)
}

fn read_from(build: &Build, change: impl FnOnce(&mut TransferMix)) -> TransferRow {
    let mut mix = mix("ebu3362-read", FILES, true);
    change(&mut mix);
    let mut node = Node::new(build, FILES, FILE);
    step(&mut node, &mix, FILES, STEP).sum(|_| true)
}

/// Figure 19: by KiB asked for in one run.
fn by_length() -> ByBlock {
    let of = |kib: u32| {
        let rates = BLOCKS.map(|block| {
            rate(&read(|mix| {
                mix.length = Length::Frames(u64::from(kib) << 10, 1);
                mix.blocks = vec![block.min(kib << 10)];
            }))
        });
        (f64::from(kib), rates)
    };
    [64, 256, 1024, 4096, 10_240].map(of).into()
}

/// Figure 20: by percent of random access.
fn by_random_share() -> ByBlock {
    let of = |share: u8| {
        let rates = BLOCKS.map(|block| {
            rate(&read(|mix| {
                mix.random_percent = share;
                mix.blocks = vec![block];
            }))
        });
        (f64::from(share), rates)
    };
    [0, 10, 25, 50, 75, 100].map(of).into()
}

/// Figures 21 and 22.
fn by_block_size() -> Vec<BySize> {
    let of = |kib: u32| {
        let row = read(|mix| mix.blocks = vec![kib << 10]);
        let (kib, latency) = (f64::from(kib), latency(&row));
        BySize { kib, rate: rate(&row), latency, with_filling: latency + kib * FILLING }
    };
    [4, 16, 64, 256, 1024].map(of).into()
}

/// Both ways in which a block larger than the node's largest request can be split.
fn in_parts() -> Table {
    let ways = [("all at once", None), ("one after another", Some(LARGEST))];
    let rows = ways.map(|(way, largest)| {
        let build = Build { largest, ..approach_1() };
        let rate = |kib: u32, random_percent: u8| {
            rate(&read_from(&build, |mix| {
                mix.random_percent = random_percent;
                mix.blocks = vec![kib << 10];
            }))
        };
        let [small, large] = [64, 1024].map(|kib| [0, 100].map(|share| rate(kib, share)));
        let lost = |[runs, places]: [f64; 2]| format!("{:.0} %", (1.0 - places / runs) * 100.0);
        let whole = |rate: f64| format!("{rate:.0}");
        [
            cell("parts", "parts are requested", way),
            cell("small", ">64 KiB in order, MB/s", whole(small[0])),
            cell("small_lost", ">lost at random", lost(small)),
            cell("large", ">1 MiB in order, MB/s", whole(large[0])),
            cell("large_lost", ">lost at random", lost(large)),
        ]
    });
    Table::of("split", "Blocks of 1 MiB, split into requests of 64 KiB", rows)
}

fn claim_lengths(claims: &mut Claims, lengths: &ByBlock) {
    for (number, block) in BLOCK_NAMES.iter().enumerate() {
        let (short, long) = (lengths[0].1[number], lengths[4].1[number]);
        let ours = format!("{short:.0} MB/s at 64 KiB, {long:.0} at 10 MiB, blocks of {block}");
        claims.add("19", ours, long > short, None);
    }
}

fn claim_shares(claims: &mut Claims, shares: &ByBlock) {
    for (number, block) in BLOCK_NAMES.iter().enumerate() {
        let (none, full) = (shares[0].1[number], shares[5].1[number]);
        let ours = format!("{none:.0} MB/s at 0 %, {full:.0} at 100 %, blocks of {block}");
        claims.add("20", ours, full < none, None);
    }
    let lost = [0, 1].map(|block: usize| 1.0 - shares[5].1[block] / shares[0].1[block]);
    let ours =
        format!("{:.0} % lost with 64 KiB, {:.0} % with 1 MiB", lost[0] * 100.0, lost[1] * 100.0);
    claims.add("20", ours, lost[1] > lost[0], None);
}

fn claim_sizes(claims: &mut Claims, sizes: &[BySize]) {
    let (small, large) = (&sizes[0], &sizes[4]);
    let ours = format!("{:.0} MB/s at 4 KiB, {:.0} at 1 MiB", small.rate, large.rate);
    claims.add("21", ours, sizes.is_sorted_by(|a, b| a.rate < b.rate), None);
    let ours = format!("{:.2} ms at 4 KiB, {:.2} at 1 MiB", small.latency, large.latency);
    claims.add("22", ours, large.latency > small.latency, None);
    let ours = format!("{:.2} ms, {:.1} ms", small.with_filling, large.with_filling);
    claims.add("22", ours, None, None);
}

fn figures(lengths: &ByBlock, shares: &ByBlock, sizes: &[BySize]) -> Vec<Figure> {
    let both = |of: &ByBlock| {
        let points = |number: usize| of.iter().map(|(x, rates)| (*x, rates[number])).collect();
        vec![line("64 KiB blocks", points(0)), line("1 MiB blocks", points(1))]
    };
    let by_kib = |name: &str, of: fn(&BySize) -> f64| {
        line(name, sizes.iter().map(|size| (size.kib, of(size))).collect())
    };
    let rates = vec![by_kib("sequential reads", |size| size.rate)];
    let times = vec![
        by_kib("as defined", |size| size.latency),
        by_kib("with msMeter's filling", |size| size.with_filling),
    ];
    let (kib, percent) = (["KiB", "MB/s"], ["% at random", "MB/s"]);
    let kib_ms = ["KiB", "ms"];
    vec![
        figure("19", kib, both(lengths)),
        figure("20", percent, both(shares)),
        figure("21", kib, rates),
        figure("22", kib_ms, times),
    ]
}

/// Files, and as many clients.
const FILES: u32 = 10;

/// The largest request of both storages of the paper (section 5.4), in bytes.
const LARGEST: u64 = 64 << 10;

const STEP: Duration = Duration::from_secs(10);

/// What msMeter takes to fill a buffer, in ms for a KiB: 15 ms for 1 MiB.
const FILLING: f64 = 15.0 / 1024.0;
