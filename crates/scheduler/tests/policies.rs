//! Every policy on the same disk and the same equal streams, beside the closed form of its source:
//! how many come in.
//!
//! The streams are those of Alderman and Diallo: 1.5 Mb/s in reads of a million bytes, one each in
//! a slot of 5.333 s, all due in every slot.

use disk::DiskModel;
use scheduler::{Demand, DiskBooks, DiskTimings, PieceDue, PolicyKind, ServiceCurve, Supply};
use std::time::Duration;
use units::{ByteCount, Moment, SlotIndex};

const SLOT: Duration = Duration::from_nanos(5_333_333_333);
const READ: u64 = 1_000_000;
const MIN_READ: u32 = 40;

fn timings() -> DiskTimings {
    let model = DiskModel::preset("st39183w").expect("comes along");
    DiskTimings {
        observed_min_read: Some(55),
        // 48 in a slot, 106 in two: a slow slot is made good.
        curve: ServiceCurve::of_slots([&[48, 58, 50, 58][..]]),
        ..DiskTimings::of_model(&model, ByteCount(READ), 1)
    }
}

/// Streams of twelve slots come until one is refused.
fn admitted(policy: PolicyKind, timings: &DiskTimings) -> u64 {
    let supply = Supply {
        min_read: MIN_READ,
        read_size: READ,
        memory: 1 << 50,
        slot: SLOT,
        free_at: Moment::ZERO,
        owed: 0,
        timings,
    };
    let transfer = timings.costs.as_ref().map_or(0, |costs| costs.slowest_transfer(READ));
    let (mut books, mut demand) = (DiskBooks::default(), Demand::default());
    for stream in 0..1000 {
        demand.begin(SlotIndex(0));
        demand.add_track((0..12).map(|piece| PieceDue {
            piece,
            due: SlotIndex(u64::from(piece) + 1),
            release: SlotIndex(u64::from(piece) + 2),
            len: u32::try_from(READ).unwrap(),
            transfer: u32::try_from(transfer).unwrap(),
            followed_after: None,
        }));
        if !policy.policy().verdict(&books, &supply, &demand).is_admit() {
            return stream;
        }
        books.book_demand(&demand);
        books.book_summary(demand.summary());
    }
    1000
}

fn most(fits: impl Fn(u64) -> bool) -> u64 {
    (0..1000).take_while(|n| fits(*n)).last().unwrap_or(0)
}

#[test]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn equal_streams_come_in_as_the_closed_forms_say() {
    let timings = timings();
    let costs = timings.costs.as_ref().unwrap();
    let slot = 5_333_333_333;
    let inner = costs.slowest_transfer(READ);
    let batch = |n: u64| costs.batch(n, n * inner);
    let in_slot = |charge: &dyn Fn(u64) -> u64| most(|n| charge(n) <= slot);
    // Without the turning: one revolution is 8.333 ms.
    let turn = 60e9 / 7200.0;
    let still = |n: u64| batch(n) as f64 - n as f64 * turn;
    let waiting = |n: u64, turns: f64| (still(n) + turns.min(n as f64) * turn) as u64;
    let normal = |z: f64| move |n: u64| n as f64 / 2.0 + z * (n as f64 / 12.0).sqrt();
    // Demand of the first slots is read from slot 0 on: one slot's worth ahead, over twelve.
    let ahead = |charge: &dyn Fn(u64) -> u64| {
        most(|n| (1..=12).all(|due: u64| due * charge(n) <= (due + 1) * slot))
    };
    let quarter = |n: u64| (0..4).map(|i| costs.positioning((n + i) / 4)).sum::<u64>() + n * inner;
    let rates = |n: u64| timings.rates.unwrap().nanos(n, n * READ);
    let line = timings.line.unwrap();
    let expected = [
        (PolicyKind::SimpleMaximum, u64::from(MIN_READ)),
        (PolicyKind::InstantaneousMaximum, u64::from(MIN_READ)),
        // Twelve reads in the twelve slots until the last is due.
        (PolicyKind::Average, u64::from(MIN_READ)),
        (PolicyKind::VbrSim, u64::from(MIN_READ)),
        (PolicyKind::Observed, 55),
        // 48 by the first slot, 106 by the second, then 48 and 58 by turns: the first decides.
        (PolicyKind::ServiceCurve, 48),
        (PolicyKind::Scan, in_slot(&batch)),
        (PolicyKind::GroupedSweeps, in_slot(&quarter)),
        (PolicyKind::FullStroke, 44),
        (PolicyKind::Normal, in_slot(&|n| waiting(n, normal(4.753)(n)))),
        // More than is sure, less than half a revolution each: in the worst zone the rest is
        // transfer.
        (PolicyKind::Chernoff, in_slot(&|n| waiting(n, normal(4.753)(n)))),
        (PolicyKind::Overflow, in_slot(&|n| waiting(n, n as f64 / 2.0))),
        (
            PolicyKind::ServiceCycle,
            most(|n| {
                let rate = units::BitRate(1_500_000);
                n == 0 || line.buffer(u32::try_from(n).unwrap(), rate).is_some_and(|b| b.0 <= READ)
            }),
        ),
        (PolicyKind::Rates, ahead(&rates)),
        (PolicyKind::None, 1000),
    ];
    for (policy, streams) in expected {
        assert_eq!(admitted(policy, &timings), streams, "{}", policy.name());
    }
}
