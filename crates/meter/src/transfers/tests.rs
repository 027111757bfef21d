//! Statistics of random draws, and transfers in virtual time compared with the two formulas.

use super::run::PATIENCE;
use super::*;
use crate::log::{OperationKind, Record};
use crate::profiles;
use crate::target::SimulatedPort;
use device::{Access, Fault, FaultRule, SimulatedDisk};
use disk::DiskModel;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{BitRate, ByteCount, Hinted};

fn mix(name: &str) -> TransferMix {
    TransferMix::of(&profiles::named(name).unwrap(), 4, ByteCount(8 << 30))
}

fn drawn(mix: &TransferMix, count: usize) -> Vec<DrawnTransfer> {
    let mut draw = TransferDraw::new(mix, 1, 5);
    (0..count).map(|_| draw.next(0)).collect()
}

fn percent(transfers: &[DrawnTransfer], of: fn(&DrawnTransfer) -> bool) -> f64 {
    100.0 * transfers.iter().filter(|transfer| of(transfer)).count() as f64 / transfers.len() as f64
}

/// The share of writes, of random transfers, and the mean length in MiB, to half a percent or 1 %
/// of the length.
#[test]
fn draws_have_the_requested_proportions_and_those_of_msmeter_do_not() {
    for (name, written, random, length) in [
        ("ebu3362-edit", 50.0, 10.0, 5.0),
        ("ebu3362-edit-msmeter-exact", 58.6, 11.7, 4.25),
        ("ebu3362-read", 0.0, 0.0, 5.0),
        ("ebu3362-write", 100.0, 0.0, 5.0),
    ] {
        let all = drawn(&mix(name), 200_000);
        let close = |what, found: f64, expected: f64, by: f64| {
            assert!((found - expected).abs() <= by, "{name}: {what} {found}, not {expected}");
        };
        close("written", percent(&all, |t| t.kind == OperationKind::Write), written, 0.5);
        close("random", percent(&all, |t| t.random), random, 0.5);
        let sum: u64 = all.iter().map(|transfer| transfer.length).sum();
        let mean = sum as f64 / all.len() as f64 / f64::from(1 << 20);
        // msMeter moves whole blocks only, which takes half a block from the mean length.
        let cut = if name.ends_with("exact") { 0.12 } else { 0.0 };
        close("length", mean, length - cut, 0.05);
        for transfer in all {
            assert!(transfer.start + transfer.length <= 8 << 30, "{transfer:?}");
            assert!(transfer.length <= 10 << 20 && transfer.blocks() >= 1, "{transfer:?}");
            assert!(transfer.block.is_power_of_two() && transfer.file < 4, "{transfer:?}");
        }
    }
}

#[test]
fn the_numbers_are_those_of_the_c_library() {
    // The first numbers after srand(1) and after srand(42).
    for (seed, first) in [
        (1, [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793]),
        (42, [71_876_166, 708_592_740, 1_483_128_881, 907_283_241, 442_951_012]),
    ] {
        let mut rand = Glibc::new(seed);
        assert_eq!([(); 5].map(|()| rand.roll()), first);
    }
}

#[test]
fn block_sizes_are_equally_likely_where_the_length_allows_them() {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for transfer in drawn(&mix("ebu3362-edit"), 90_000) {
        *counts.entry(transfer.block).or_default() += 1;
    }
    let sizes: Vec<u32> = (10..=20).map(|power| 1 << power).collect();
    let found: Vec<u32> = counts.keys().copied().collect();
    assert!(found.iter().all(|size| sizes.contains(size)), "{found:?}");
    // 10,000 each; a tenth of the lengths is too short for the largest block.
    assert!(counts[&(64 << 10)].abs_diff(10_000) < 700 && counts[&(1 << 20)].abs_diff(9_000) < 600);
}

fn ran(plan: &TransfersPlan, disk: &SimulatedDisk) -> (TransfersOutcome, Vec<Record>) {
    let mut port = SimulatedPort::with_files(disk.clone(), plan.mix.each);
    let mut log = Vec::new();
    let outcome = run(plan, &mut port, &mut log, &mut |_| true).unwrap();
    (outcome, log)
}

fn disk() -> SimulatedDisk {
    SimulatedDisk::new(&DiskModel::preset("ssd-sata").unwrap())
}

fn plan(name: &str, clients: u32, most: u64) -> TransfersPlan {
    let duration = Duration::from_secs(3600);
    TransfersPlan { mix: mix(name), clients, duration, most: Some(most), seed: 1, rate: None }
}

#[test]
fn rate_and_latency_follow_from_the_log_by_the_formulas() {
    let (outcome, log) = ran(&plan("ebu3362-edit", 3, 40), &disk());
    assert!(outcome.complete && outcome.failed == 0 && outcome.unfinished == 0);
    let all = outcome.sum(|_| true);
    assert_eq!((all.transfers, all.blocks), (120, log.len() as u64));
    let data: u64 = log.iter().map(|block| block.end - block.start).sum();
    assert_eq!(all.data, Duration::from_nanos(data));
    let bytes: u64 = log.iter().map(|block| u64::from(block.bytes)).sum();
    assert_eq!(
        (all.bytes, all.rate()),
        (ByteCount(bytes), BitRate::of(ByteCount(bytes), all.data))
    );
    // Virtual time does not pass between blocks, and there is no file to open.
    assert_eq!(
        (all.latency, all.meter, all.open),
        (Duration::ZERO, Duration::ZERO, Duration::ZERO)
    );
    let each: Vec<u64> = outcome.clients.iter().map(|client| client.transfers).collect();
    assert_eq!(each, [40, 40, 40]);
    let seconds: u64 = outcome.seconds.iter().map(|s| s.read.0 + s.written.0).sum();
    assert_eq!(seconds, bytes);
    for (key, row) in &outcome.rows {
        let of = |block: &&Record| block.kind == key.kind && block.random == key.random;
        assert!(log.iter().filter(of).count() as u64 >= row.blocks);
    }
}

/// 80 Mb/s of 1 MB blocks: one is due every 100 ms, whichever client takes it.
#[test]
fn a_rate_is_kept_by_the_clock_and_waiting_for_it_is_no_latency() {
    let mut plan = plan("ebu3362-read", 3, 40);
    (plan.mix.blocks, plan.rate) = (vec![1_000_000], Some(BitRate(80_000_000)));
    plan.mix.length = Length::UpTo(1_000_000);
    let (outcome, mut log) = ran(&plan, &disk());
    log.sort_by_key(|block| block.intended);
    let mut due = 0;
    for block in &log {
        assert_eq!((block.intended, block.start), (due, due), "{block:?}");
        due += u64::from(block.bytes) * 100;
    }
    let all = outcome.sum(|_| true);
    assert_eq!((all.latency, all.meter), (Duration::ZERO, Duration::ZERO));
    assert_eq!((all.transfers, outcome.response.count()), (120, log.len() as u64));
}

/// A freeze of 3 s: afterwards the blocks that were due meanwhile are made at full speed, and their
/// responses count from when they were due.
#[test]
fn a_freeze_is_caught_up_with_and_seen_in_the_responses() {
    let mut plan = plan("ebu3362-read", 2, 1000);
    (plan.mix.blocks, plan.rate) = (vec![1 << 20], Some(BitRate(80_000_000)));
    plan.mix.length = Length::UpTo(1 << 20);
    plan.duration = Duration::from_secs(10);
    let (frozen, fault) = (disk(), Fault::Stall(Duration::from_secs(3)));
    frozen.add(FaultRule { access: Access::Read, area: 0..u64::MAX, times: 2, fault });
    let (outcome, log) = ran(&plan, &frozen);
    assert!(outcome.complete);
    let asked = outcome.total_rate().0;
    assert!((78_000_000..82_000_000).contains(&asked), "{asked}");
    assert!(outcome.response.max() >= Duration::from_millis(2900));
    let late = log.iter().filter(|block| block.start > block.intended + 100_000_000).count();
    assert!(late > 0, "blocks wait for a client");
    assert!(log.iter().all(|block| block.intended < 10_000_000_000), "none begins after the end");
}

#[test]
fn the_seed_alone_determines_the_run() {
    let places = |seed| {
        let plan = TransfersPlan { seed, ..plan("ebu3362-edit", 2, 20) };
        let (_, log) = ran(&plan, &disk());
        log.iter().map(|block| (block.file, block.offset, block.end)).collect::<Vec<_>>()
    };
    assert_eq!(places(7), places(7));
    assert!(places(7) != places(8));
}

#[test]
fn no_position_is_used_twice_before_all_were_used() {
    let mut plan = plan("ebu3362-edit", 4, 180);
    (plan.mix.unrepeated, plan.mix.blocks) = (true, vec![1 << 20]);
    let (_, log) = ran(&plan, &disk());
    let mut blocks: Vec<&Record> = log.iter().collect();
    // 4 files of 819 cells; 648 runs and about 360 single blocks take one cell each.
    blocks.sort_by_key(|block| (block.file, block.offset));
    let again = |pair: &&[&Record]| {
        pair[0].file == pair[1].file && pair[0].offset + u64::from(pair[0].bytes) > pair[1].offset
    };
    assert_eq!(blocks.windows(2).filter(again).count(), 0, "of {} blocks", blocks.len());
    plan.mix.unrepeated = false;
    let (_, log) = ran(&plan, &disk());
    let mut blocks: Vec<&Record> = log.iter().collect();
    blocks.sort_by_key(|block| (block.file, block.offset));
    assert!(blocks.windows(2).filter(again).count() > 0, "by chance some come again");
}

/// A server that is gone answers nothing: the run of 5 s is over half a minute after its end.
#[test]
fn storage_that_hangs_ends_the_run_30_s_after_its_end() {
    let disk = disk();
    let fault = Fault::Stall(Duration::from_secs(3600));
    disk.add(FaultRule { access: Access::Read, area: 0..64 << 30, times: 2, fault });
    let duration = Duration::from_secs(5);
    let plan = TransfersPlan { duration, ..plan("ebu3362-read", 2, 1_000_000) };
    let (outcome, _) = ran(&plan, &disk);
    assert_eq!((outcome.complete, outcome.unfinished), (false, 2));
    let late = outcome.took - duration;
    assert!(late >= PATIENCE && late < PATIENCE + Duration::from_secs(2), "{late:?}");
}

#[test]
fn a_failed_block_ends_its_transfer_and_not_the_run() {
    let disk = disk();
    let area = 0..64 << 30;
    disk.add(FaultRule { access: Access::Read, area, times: 3, fault: Fault::Errno(5) });
    let (outcome, log) = ran(&plan("ebu3362-read", 2, 10), &disk);
    assert_eq!((outcome.failed, outcome.sum(|_| true).transfers), (3, 17));
    assert_eq!(log.iter().filter(|block| block.errno == 5).count(), 3);
    assert!(outcome.first_failure.unwrap().message.contains("reading"));
}

#[test]
fn lengths_are_whole_frames_where_a_profile_has_frames() {
    let mut frames = mix("dpx10-hd");
    frames.length = Length::Frames(8_296_448, 3);
    let lengths: Vec<u64> = drawn(&frames, 300).iter().map(|t| t.length / 8_296_448).collect();
    assert!((1..=3).all(|count| lengths.contains(&count)));
    assert!(drawn(&frames, 300).iter().all(|t| t.length % 8_296_448 == 0 && t.block == 8_296_448));
}

#[test]
fn an_impossible_mix_is_refused() {
    let mut small = mix("ebu3362-edit");
    small.each = ByteCount::mib(10);
    assert!(small.check(1).unwrap_err().one_line().contains("make --size larger"));
    let mut own = mix("ebu3362-edit");
    own.own_file = true;
    assert!(own.check(5).unwrap_err().to_string().contains("4 files are too few for 5 clients"));
    own.blocks = vec![512];
    assert!(own.check(1).unwrap_err().one_line().contains("no block"));
}

#[test]
fn operations_of_a_trace_are_drawn_with_its_proportions() {
    let text = "name = 'd'\ntitle = 'd'\nbytes = 1\npattern = 'mixed'\n\
                definition = { kind = 'table' }\nsource = ''\nstatus = 'house'\n\
                [drawn]\nreads_per_million = 750_000\n\
                [drawn.reads]\nsequential_per_million = 900_000\n\
                sizes = [[512, 250_000], [65536, 750_000]]\n\
                [drawn.writes]\nsequential_per_million = 0\nsizes = [[1048576, 1_000_000]]\n";
    let profile: profiles::Profile = toml::from_str(text).unwrap();
    let mix = TransferMix::of(&profile, 2, ByteCount::mib(64));
    mix.check(3).unwrap();
    assert!(mix.writes());
    let all = drawn(&mix, 40_000);
    let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1.0, "{found} {wanted}");
    near(percent(&all, |t| t.kind == OperationKind::Read), 75.0);
    near(percent(&all, |t| t.kind == OperationKind::Read && t.length == 512), 75.0 * 0.25);
    near(percent(&all, |t| t.kind == OperationKind::Read && !t.random), 75.0 * 0.9);
    assert!(
        all.iter()
            .all(|t| t.blocks() == 1 && (t.kind == OperationKind::Read || t.length == 1 << 20))
    );
    let plan = TransfersPlan { mix, ..plan("ebu3362-edit", 3, 50) };
    let (outcome, log) = ran(&plan, &disk());
    assert_eq!((outcome.failed, log.len()), (0, 150));
    assert!(log.iter().all(|block| block.offset + u64::from(block.bytes) <= 64 << 20));
}
