//! Absurd disks, absurd supplies and absurd demands, every one with every other, by every policy:
//! each gets a defined answer, and the books are empty when all have left.

use disk::bounds::RoundCost;
use disk::{Calibration, DiskModel, ReadCost, ReadGuarantee};
use scheduler::{
    Demand, DiskBooks, DiskTimings, Lead, NextSweep, PieceDue, PlayoutClock, PolicyKind, Rates,
    ServiceCurve, Supply, TrackPieces, Verdict, WindowPlan, WriteShare,
};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment, SlotIndex};

const SLOT: Duration = Duration::from_millis(500);

fn disks() -> Vec<(&'static str, DiskTimings)> {
    let model = |name| {
        DiskTimings::of_model(&DiskModel::preset(name).expect("comes along"), ByteCount::MIB, 4)
    };
    let measured = |rate: u64, min_read, mean_read| {
        let guarantee =
            |read_size| ReadGuarantee::of_slot(SLOT, read_size, min_read, mean_read, Duration::MAX);
        let record = Calibration {
            slot: SLOT,
            guarantees: [ByteCount(0), ByteCount::MIB, ByteCount::MIB].map(guarantee).to_vec(),
            queue_depth: 0,
            r0: BitRate(rate),
            t0: Duration::MAX,
            zones: vec![(ByteCount(9), BitRate(rate)), (ByteCount(9), BitRate(rate))],
            actuator: None,
            writing: None,
            method: String::new(),
            measured_at: 0,
            measured: None,
            outliers: Vec::new(),
        };
        DiskTimings::of_calibration(&record, ByteCount::MIB)
    };
    let nothing = RoundCost {
        rate: BitRate(0),
        revolution: Duration::ZERO,
        settle: Duration::MAX,
        full_seek: Duration::MAX / 2,
    };
    vec![
        ("nothing known", DiskTimings::default()),
        ("a hard disk", model("st39183w")),
        ("a solid-state disk", model("ssd-nvme")),
        ("one that is slowdown for ever", DiskTimings { slowdown: u64::MAX, ..model("hdd-20tb") }),
        ("mechanics of nothing", DiskTimings { round: Some(nothing), ..model("atlas-iv") }),
        (
            "no rates and no curve to speak of",
            DiskTimings {
                rates: Some(Rates { each: u64::MAX, per_mib: u64::MAX, once: u64::MAX }),
                write_share: WriteShare { part: u64::MAX, burst: u64::MAX },
                line: Some(ReadCost { r0: BitRate(0), t0: Duration::MAX }),
                curve: ServiceCurve::of_slots([&[0, u32::MAX][..]]),
                observed_min_read: Some(0),
                ..model("ssd-sata")
            },
        ),
        ("measured: nothing at all", measured(0, 0, f64::NAN)),
        ("measured: everything", measured(u64::MAX, u32::MAX, f64::INFINITY)),
    ]
}

/// Reads in a slot, bytes of a read, bytes of memory, a slot, when the device is free.
const SUPPLIES: [(u32, u64, u64, Duration, u64); 7] = [
    (24, 1 << 20, 1 << 30, SLOT, 0),
    (0, 0, 0, Duration::from_nanos(1), u64::MAX),
    (1, 1 << 20, (1 << 20) - 1, SLOT, 0), // buffers smaller than one read
    (u32::MAX, u64::MAX, u64::MAX, SLOT, 0),
    (24, 1, 1 << 30, Duration::MAX, 0),
    (24, 1 << 20, 1 << 30, Duration::ZERO, 1),
    (24, 1 << 20, 1 << 30, SLOT, u64::MAX),
];

fn demands() -> Vec<(&'static str, Vec<PieceDue>)> {
    let of = |due: &[u32], piece: u32, bytes: u64, origin: u64| {
        let timing = PlayoutClock {
            origin: Moment(origin),
            startup: Duration::from_secs(1),
            opens_after: Duration::ZERO,
            with_first_ms: 0,
            from_ms: 0,
            kept_from_ms: 0,
            kept_longer: 0,
            slot: SLOT,
            early: 0,
        };
        let curve = TrackPieces {
            due,
            piece,
            bytes,
            lead: Lead::default(),
            transfer: &[u32::MAX],
            followed: &[true],
        };
        timing.pieces(curve, 0).collect()
    };
    vec![
        ("nothing", Vec::new()),
        (
            "a usual minute",
            of(&(0..30).map(|i| i * 2000).collect::<Vec<_>>(), 1 << 20, 30 << 20, 0),
        ),
        ("one frame of 1 GB", of(&[0], 1 << 20, 1 << 30, 0)),
        ("no duration", of(&[0; 50], 1 << 16, 50 << 16, 0)),
        ("times that go back", of(&[9000, 4000, 0, 70_000, 3], 1 << 20, 5 << 20, 0)),
        ("from before now", of(&[0, 0], 1 << 20, 2 << 20, 0)),
        ("pieces of 4 GB", of(&[0, 1000], u32::MAX, 8 << 30, 0)),
        ("bytes without end", of(&[0, 500], u32::MAX, u64::MAX / 1_000_000, 0)),
        ("due in 49 days", of(&[u32::MAX], 1 << 20, 1 << 20, 0)),
    ]
}

#[test]
fn every_policy_answers_and_the_books_are_empty_in_the_end() {
    let (disks, demands) = (disks(), demands());
    let (mut admitted, mut refused) = (0, 0);
    for (disk, timings) in &disks {
        for (min_read, read_size, memory, slot, free) in SUPPLIES {
            let free_at = Moment(free);
            let supply = Supply { min_read, read_size, memory, slot, free_at, owed: 0, timings };
            for policy in PolicyKind::all() {
                let mut books = DiskBooks::default();
                books.advance(SlotIndex(1));
                let mut inside = Vec::new();
                for (what, pieces) in &demands {
                    let told = format!("{policy:?}, {disk}, {supply:?}, {what}");
                    let mut demand = Demand::default();
                    demand.begin(SlotIndex(1));
                    let due =
                        |piece: &PieceDue| PieceDue { due: piece.due.max(SlotIndex(1)), ..*piece };
                    let summary = demand.add_track(pieces.iter().map(due));
                    let plan = match policy.policy().verdict(&books, &supply, &demand) {
                        Verdict::Admit { plan, .. } => {
                            admitted += 1;
                            books.book_demand(&demand);
                            books.book_summary(summary);
                            inside.push((pieces.iter().map(due).collect::<Vec<_>>(), summary));
                            plan
                        }
                        Verdict::Refuse(shortage) => {
                            refused += 1;
                            assert!(shortage.missing > 0, "{told}: {shortage:?}");
                            let out = policy.policy().ruled_out(&books, &supply, &demand, shortage);
                            assert!(out > 0, "{told}");
                            WindowPlan::default()
                        }
                    };
                    // What the run would do by that plan is defined, too.
                    if let NextSweep::Batch { through } = plan.next(&books, &supply) {
                        assert!(books.total().reads > 0, "{told}: {through:?}");
                    }
                }
                for (pieces, summary) in inside {
                    pieces.into_iter().for_each(|piece| books.unbook(piece));
                    books.unbook_summary(summary);
                }
                assert!(books.is_empty(), "{policy:?}, {disk}: {:?}", books.total());
            }
        }
    }
    assert!(admitted > 1000 && refused > 1000, "{admitted} admitted, {refused} refused");
}
