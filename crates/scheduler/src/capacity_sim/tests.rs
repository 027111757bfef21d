//! Servers that fill, by several policies.

use super::*;
use crate::Lead;
use disk::DiskModel;
use units::ByteCount;

const SLOT: Duration = Duration::from_millis(500);
const MIB: u64 = 1 << 20;

/// Ten minutes of one piece every `every_ms`, in bytes of which the last piece is whole.
fn flat(every_ms: u32) -> Vec<u32> {
    (0..600_000 / every_ms).map(|i| i * every_ms).collect()
}

/// A server that knows nothing of its disk, of which one title is requested again and again.
fn server<'a>(
    policy: PolicyKind,
    timings: &'a DiskTimings,
    viewers: &'a [Vec<TrackPieces<'a>>],
) -> CapacitySim<'a> {
    CapacitySim {
        policy,
        min_read: 5,
        read_size: MIB,
        memory: 1 << 40,
        timings,
        slot: SLOT,
        startup: SLOT * 2,
        viewers,
        reserve: 2 * MIB,
        narrows_sockets: true,
        arrivals: 1,
        patience: 60,
        filling: 600,
    }
}

fn held(policy: PolicyKind, min_read: u32, memory: u64, due: &[u32]) -> CapacityResult {
    let curve = TrackPieces {
        due,
        piece: 1 << 20,
        bytes: MIB * due.len() as u64,
        lead: Lead::default(),
        transfer: &[],
        followed: &[],
    };
    let (timings, viewers) = (DiskTimings::default(), [vec![curve]]);
    CapacitySim { min_read, memory, ..server(policy, &timings, &viewers) }.run()
}

/// One read in 2 s each, 5 in 500 ms in all: 20 streams, to the last read.
#[test]
fn streams_of_constant_rate_fill_the_disk() {
    for (policy, streams) in [
        (PolicyKind::VbrSim, 20),
        (PolicyKind::InstantaneousMaximum, 18), // everybody begins with two reads
        (PolicyKind::SimpleMaximum, 5),
    ] {
        let full = held(policy, 5, 1 << 40, &flat(2000));
        assert_eq!((full.streams, full.late), (streams, 0), "{policy:?}");
        assert_eq!(full.short_of, Some(Resource::Disk));
    }
}

#[test]
fn with_little_memory_memory_is_short() {
    let full = held(PolicyKind::VbrSim, 5, 40 * MIB, &flat(2000));
    assert_eq!(full.short_of, Some(Resource::Memory));
    // A piece in each socket and one or two in the schedule; with two in each socket: 10.
    assert_eq!(full.streams, 14, "{full:?}");
    assert!(full.memory <= 40 * MIB && full.late == 0, "{full:?}");
}

/// A title that is all peak in its second half: reading ahead carries it, the mean does not.
#[test]
fn a_promise_is_kept_where_the_mean_breaks_it() {
    let quiet = (0..75).map(|i| i * 4000);
    let due: Vec<u32> = quiet.chain((0..600).map(|i| 300_000 + i * 500)).collect();
    let tight = 64 * MIB;
    let kept = held(PolicyKind::VbrSim, 5, tight, &due);
    assert!(kept.streams > 0 && kept.late == 0, "{kept:?}");
    let broken = held(PolicyKind::None, 5, 1 << 40, &due);
    assert!(broken.late > 0 && broken.streams > kept.streams, "{broken:?}");
}

/// In its own time a disk does more than it is guaranteed to do by count, and keeps it.
#[test]
fn counted_in_time_more_come_in_and_nobody_is_late() {
    let model = DiskModel::preset("hdd-20tb").unwrap();
    let timings = DiskTimings::of_model(&model, ByteCount(MIB), 4);
    let costs = timings.costs.as_ref().unwrap();
    let places: Vec<[u32; 1]> = (0..10)
        .map(|i| [u32::try_from(costs.transfer(model.capacity().0 / 11 * i, MIB)).unwrap()])
        .collect();
    let due = flat(2000);
    let curve = TrackPieces {
        due: &due,
        piece: 1 << 20,
        bytes: MIB * due.len() as u64,
        lead: Lead::default(),
        transfer: &[],
        followed: &[],
    };
    let places = [places];
    let viewers = viewers_of_copies(&[curve], &places, timings.costs.as_ref());
    let by = |policy, memory| {
        CapacitySim {
            min_read: model.guaranteed_reads(ByteCount(MIB), SLOT),
            memory,
            arrivals: 2,
            ..server(policy, &timings, &viewers)
        }
        .run()
    };
    let (time, count) = (by(PolicyKind::TimeDomain, 1 << 40), by(PolicyKind::VbrSim, 1 << 40));
    assert_eq!((time.late, count.late), (0, 0));
    // 24 reads in a slot, and one more for the start-up time of all.
    assert!((96..=97).contains(&count.streams), "{count:?}");
    assert!(time.streams > 110, "{time:?}");
    let little = by(PolicyKind::TimeDomain, 200 * MIB);
    assert_eq!((little.late, little.short_of), (0, Some(Resource::Memory)), "{little:?}");
    assert!(little.memory <= 200 * MIB && little.streams < time.streams, "{little:?}");
}

/// A disk that is ahead reads several of a stream's pieces at once, and waits for the arm once; and
/// nobody is let in for what was read ahead of titles that soon end.
#[test]
fn visits_let_more_in_and_short_titles_do_not() {
    let model = DiskModel::preset("st39183w").unwrap();
    let timings = DiskTimings::of_model(&model, ByteCount(MIB), 4);
    let (piece, every_ms) = (256 << 10, 1000);
    let slowest = timings.costs.as_ref().unwrap().slowest_transfer(piece);
    let places = [vec![[u32::try_from(slowest).unwrap()]]];
    let due = flat(every_ms);
    let by = |policy, followed: &[bool]| {
        let bytes = piece * due.len() as u64;
        let curve = TrackPieces {
            due: &due,
            piece: 256 << 10,
            bytes,
            lead: Lead::default(),
            transfer: &[],
            followed,
        };
        let viewers = viewers_of_copies(&[curve], &places, timings.costs.as_ref());
        CapacitySim {
            min_read: model.guaranteed_reads(ByteCount(MIB), SLOT),
            filling: 120,
            ..server(policy, &timings, &viewers)
        }
        .run()
    };
    let (visits, reads) = (vec![true; due.len()], vec![false; due.len()]);
    let (more, few) = (by(PolicyKind::TimeDomain, &visits), by(PolicyKind::TimeDomain, &reads));
    assert!(more.streams > few.streams && more.late == 0, "{more:?} {few:?}");
    let transfer_alone = u64::from(every_ms) * 1_000_000 / slowest;
    let rates = by(PolicyKind::Rates, &visits);
    assert!(rates.streams < transfer_alone && rates.late == 0, "{rates:?} {transfer_alone}");
}

#[test]
fn nothing_to_play_and_nothing_to_play_from_are_no_streams() {
    assert_eq!(held(PolicyKind::VbrSim, 5, 1 << 40, &[]), CapacityResult::default());
    assert_eq!(held(PolicyKind::VbrSim, 0, 1 << 40, &flat(2000)).streams, 0);
}
