//! Rounds on simulated disks with counts by hand, and on a file.

use super::*;
use crate::target::{QueuedPort, SimulatedPort};
use device::{
    Access, BlockDevice, Fault, FaultRule, FileDevice, MemoryDevice, Method, SimulatedDisk,
};
use disk::DiskModel;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount};

const MB: ByteCount = ByteCount(1_000_000);
const MPEG1: BitRate = BitRate(1_500_000);

fn disk() -> SimulatedDisk {
    SimulatedDisk::new(&DiskModel::preset("st39183w").unwrap())
}

fn plan(streams: u32) -> RoundsPlan {
    let size = DiskModel::preset("st39183w").unwrap().capacity();
    RoundsPlan { rounds: 20, ..RoundsPlan::spread(streams, size, MB, MPEG1) }
}

fn simulated(plan: &RoundsPlan) -> RoundsOutcome {
    run(plan, &mut SimulatedPort::new(disk()), &mut |_| true).unwrap()
}

#[test]
fn a_single_stream_keeps_to_its_rounds() {
    let outcome = simulated(&plan(1));
    assert_eq!(outcome.deadline, Duration::from_nanos(5_333_333_333));
    assert_eq!((outcome.rounds.len(), outcome.late_rounds()), (20, 0));
    let began = outcome.rounds[3].began;
    assert_eq!(began, Duration::from_secs(16), "three rounds of 8 Mb at 1.5 Mb/s, no drift");
    assert_eq!(outcome.streams[0].blocks, 20);
    assert_eq!(outcome.memory, ByteCount(2_000_000));
}

#[test]
fn too_many_streams_stay_late() {
    let outcome = simulated(&plan(80));
    assert!(!outcome.holds() && !outcome.holds_in_the_mean());
    assert_eq!(outcome.late_rounds(), 20, "each starts late and ends later");
    let [first, last] = [outcome.rounds[0], outcome.rounds[19]];
    assert!(first.late < last.late && last.late == 80, "{first:?} {last:?}");
    let spread = outcome.round_times();
    assert!(spread.min <= spread.mean && spread.mean <= spread.max && spread.sd > 0.0);
}

#[test]
fn the_order_of_reads_matters_and_their_size_matters_more() {
    let took = |order, piece: Option<u64>| {
        let plan = RoundsPlan { order, at_once: if piece.is_some() { 50 } else { 1 }, ..plan(50) };
        let port = SimulatedPort::new(disk());
        let outcome = match piece {
            Some(piece) => run(&plan, &mut Cut::new(port, ByteCount(piece)), &mut |_| true),
            None => run(&plan, &mut { port }, &mut |_| true),
        };
        outcome.unwrap().round_times().mean
    };
    let scan = took(Order::Scan, None);
    let arrival = took(Order::Arrival(1), None);
    let pieces = took(Order::Scan, Some(128 << 10));
    assert!(scan < arrival && arrival < pieces, "{scan} {arrival} {pieces}");
    assert_eq!(arrival, took(Order::Arrival(1), None), "chance is a seed");
    let whole = took(Order::Scan, Some(1 << 20));
    assert!((whole - scan).abs() < 0.01 * scan, "one piece a block is no cut: {whole} {scan}");
}

#[test]
fn the_search_finds_the_same_from_below_and_from_above() {
    let attempt = |streams| run(&plan(streams), &mut SimulatedPort::new(disk()), &mut |_| true);
    let found = [40, 80].map(|about| most_streams(about, RoundsOutcome::holds, attempt).unwrap());
    assert_eq!(found[0].most, found[1].most);
    assert_eq!(found[0].failing, found[1].failing);
    assert_eq!(found[0].failing.streams.len(), found[0].most as usize + 1);
}

#[test]
fn bisection_finds_the_same_in_fewer_attempts() {
    let attempt = |streams| run(&plan(streams), &mut SimulatedPort::new(disk()), &mut |_| true);
    let wanted = most_streams(60, RoundsOutcome::holds, attempt).unwrap();
    for about in [1, 20, 60, 64, 100, 400] {
        let mut attempts = 0;
        let counted = |streams| {
            attempts += 1;
            attempt(streams)
        };
        let found = most_streams_by_halves(about, 500, RoundsOutcome::holds, counted).unwrap();
        assert_eq!((found.most, &found.failing), (wanted.most, &wanted.failing), "from {about}");
        assert!(attempts <= 14, "{attempts} from {about}");
    }
    let few = most_streams_by_halves(3, 5, RoundsOutcome::holds, attempt).unwrap();
    assert_eq!((few.most, few.failing.streams.len()), (5, 5), "no more were to be had");
    let none = most_streams_by_halves(4, 9, |_| false, attempt).unwrap();
    assert_eq!((none.most, none.failing.streams.len()), (0, 1));
}

/// One file per stream, read by every method: the test checks counts, not times.
#[test]
fn each_stream_reads_its_own_file() {
    let folder = std::env::temp_dir().join(format!("tenuto-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let len = ByteCount(400_000 / 4096 * 4096 + 4096);
    let open = |number: u8| {
        let path = folder.join(number.to_string());
        std::fs::write(&path, vec![number; usize::try_from(len.0).unwrap()]).unwrap();
        let buffered = device::OpenOptions { direct: false, ..device::OpenOptions::default() };
        FileDevice::open(&path, buffered).unwrap()
    };
    let files: Vec<FileDevice> = (0..5).map(open).collect();
    for (_, method) in Method::NAMES {
        for at_once in [1, 5] {
            let plan = RoundsPlan {
                starts: (0..5).map(|file| file * len.0).collect(),
                rounds: 4,
                at_once,
                order: Order::Streams,
                pace: RoundPace::Free,
                ..RoundsPlan::spread(5, ByteCount(5 * len.0), ByteCount(100_000), MPEG1)
            };
            let port = FileAStream::new(&files, len, plan.block, method, Instant::now()).unwrap();
            let mut port = Faster::new(Box::new(port), 3);
            let outcome = run(&plan, &mut port, &mut |_| true).unwrap();
            assert_eq!(outcome.failed(), 0, "{method}, {at_once} at once");
            assert!(outcome.streams.iter().all(|stream| stream.blocks == 4), "{method}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_block_that_cannot_be_read_is_counted_and_the_stream_continues() {
    let disk = disk();
    let area = 2_000_000..2_000_001;
    let fault = Fault::Errno(5);
    disk.add(FaultRule { access: Access::Read, area, times: u32::MAX, fault });
    let outcome = run(&plan(2), &mut SimulatedPort::new(disk), &mut |_| true).unwrap();
    assert_eq!((outcome.failed(), outcome.late_rounds()), (1, 1));
    assert_eq!(outcome.streams.iter().map(|s| s.blocks).collect::<Vec<_>>(), [19, 20]);
    assert!(outcome.streams[0].longest_gap > outcome.deadline * 3 / 2, "a block is missing");
}

#[test]
fn streams_continue_at_the_beginning_after_the_end() {
    let plan = RoundsPlan { rounds: 5, ..RoundsPlan::spread(2, ByteCount(3_500_000), MB, MPEG1) };
    assert_eq!(plan.starts, [0, units::align_down(1_250_000, 4096)]);
    let ways = plan
        .starts
        .iter()
        .map(|start| std::iter::successors(Some(*start), |place| Some(plan.after(*place))).take(5));
    let last: Vec<u64> = ways.flatten().collect();
    let second = plan.starts[1];
    let third = [second, second + 1_000_000, 0, 1_000_000, 2_000_000];
    assert_eq!(last, [[0, 1_000_000, 2_000_000, 0, 1_000_000], third].concat());
}

#[test]
fn parallel_disks_are_one_run() {
    let jobs = [30, 40].map(|streams| {
        let port: Box<dyn Port + Send> = Box::new(SimulatedPort::new(disk()));
        (plan(streams), port)
    });
    let parts = run_together(jobs.into(), &AtomicBool::new(false)).unwrap();
    let all = RoundsOutcome::joined(&parts);
    assert_eq!((all.streams.len(), all.rounds.len()), (70, 20));
    assert!(all.rounds.iter().zip(&parts[1].rounds).all(|(all, slower)| all == slower));
    assert_eq!(all.memory, ByteCount(140_000_000));
    let stopped = run_together(vec![(plan(3), Box::new(SimulatedPort::new(disk())))], &true.into());
    assert_eq!(stopped.unwrap()[0].rounds.len(), 1);
}

/// Real devices without pacing: the test checks counts, not times.
#[test]
fn devices_are_read_in_whole_aligned_blocks() {
    let size = ByteCount::mib(4);
    let path = std::env::temp_dir().join(format!("tenuto-rounds-{}", std::process::id()));
    std::fs::write(&path, vec![1; 4 << 20]).unwrap();
    let devices: [Box<dyn BlockDevice>; 2] = [
        Box::new(MemoryDevice::new(size)),
        Box::new(FileDevice::open(&path, device::OpenOptions::default()).unwrap()),
    ];
    for device in devices {
        let plan = RoundsPlan {
            rounds: 30,
            at_once: 3,
            pace: RoundPace::Free,
            order: Order::Arrival(7),
            ..RoundsPlan::spread(5, size, ByteCount(100_001), MPEG1)
        };
        let pool = QueuedPort::pool(plan.at_once, plan.block);
        let queue = device.queue(plan.at_once, &pool).unwrap();
        let mut port = QueuedPort::new(&*device, queue, pool, Instant::now());
        let outcome = run(&plan, &mut port, &mut |_| true).unwrap();
        assert_eq!(outcome.failed(), 0, "{device:?}");
        assert!(outcome.streams.iter().all(|stream| stream.blocks == 30), "{device:?}");
        assert!(!outcome.method.is_empty());
    }
    std::fs::remove_file(path).unwrap();
}
