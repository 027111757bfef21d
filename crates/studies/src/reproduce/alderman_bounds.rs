//! Alderman and Diallo's bounds: how many streams of 1.5 Mb/s their disk should hold by arithmetic,
//! and how many a current disk.
//!
//! Their figures come out only with 1 MB = 10^6 bytes = 8 Mb throughout. The rates are those the
//! paper gives, not the disk model's.

use super::alderman::{MB, MPEG1, Way, rounds};
use super::{Cell, Report, Table};
use disk::DiskModel;
use disk::bounds::{RoundCost, ratio};
use meter::rounds::{RoundsOutcome, RoundsPlan, most_streams};
use std::convert::Infallible;
use std::time::Duration;
use units::{BitRate, ByteCount};

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let mut table = Table::new(
        "streams",
        "Streams of 1.5 Mb/s, blocks of 1 MB",
        &[("by", "by"), ("rate", ">Mb/s"), ("paper", ">paper"), ("ours", ">ours")],
    );
    let rows = [
        ("Özden's bound, inner tracks as assumed", INNER, Some(70), bound(INNER)),
        ("ratio of rates, measured mean", MEASURED_MEAN, Some(68), ratio(MEASURED_MEAN, MPEG1)),
        ("Özden's bound, inner tracks as measured", MEASURED_INNER, None, bound(MEASURED_INNER)),
        ("Özden's bound, measured mean", MEASURED_MEAN, None, bound(MEASURED_MEAN)),
    ];
    for (by, rate, paper, ours) in rows {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let megabits = Cell::Number(rate.0 as f64 / 1e6, 1);
        table.row([by.into(), megabits, paper.into(), ours.into()]);
    }
    Report {
        source: "Alderman and Diallo, Optimizing Disk Performance for a Multimedia Storage \
                 Server, section 6",
        method: "q (d/r_disk + t_rot + t_settle) + 2 t_seek <= d/r_disp with t_rot 8.33 ms, \
                 t_settle 0.6 ms, t_seek 17 ms, and r_disk/r_disp."
            .to_owned(),
        tables: vec![table, today(progress)],
        notes: vec![
            "The paper calls 120 Mb/s the inner tracks' rate, but measured 100 MB in 10.9 s there, \
             which is 73.4 Mb/s: with that the same bound gives 44. 120 Mb/s are even more than it \
             measured on the outer tracks (100 MB in 6.9 s, 116 Mb/s)."
                .to_owned(),
            "On the current disk: 'mean' charges the mean seek, half a revolution and the mean rate; \
             'certain' the longest seeks, a whole revolution and each stream's own zone, so that no \
             round is late whatever the head's position; 'simulated' is SCAN order with at most one \
             late round of 100, as in alderman-table1."
                .to_owned(),
            "63 streams were measured. The bound charges a whole revolution to every block; with \
             the mean rate and half a revolution it would be 64."
                .to_owned(),
        ],
        figures: Vec::new(),
    }
}

/// Computes the bounds for a current disk.
fn today(progress: &mut dyn FnMut(f64)) -> Table {
    let mut table = Table::new(
        "today",
        "Streams of 5.55 Mb/s on a disk of 20 TB",
        &[
            ("block_mib", ">block, MiB"),
            ("mean", ">mean"),
            ("certain", ">certain"),
            ("share", ">certain/mean"),
            ("simulated", ">simulated"),
        ],
    );
    let model = DiskModel::preset("hdd-20tb").expect("a built-in model");
    for (number, mib) in BLOCKS.into_iter().enumerate() {
        let block = ByteCount::mib(mib);
        let mean = model.usual_streams(block, TODAY);
        let certain = model.zone_exact_streams(block, TODAY);
        let attempt = |streams| {
            let plan = RoundsPlan::spread(streams, model.capacity(), block, TODAY);
            Ok::<_, Infallible>(rounds(&model, Way::Scan, plan))
        };
        let about = u32::try_from(mean).unwrap_or(u32::MAX);
        let Ok(simulated) = most_streams(about, RoundsOutcome::holds, attempt);
        #[expect(clippy::cast_precision_loss, reason = "hundreds")]
        let share = Cell::Number(certain as f64 / mean as f64, 2);
        table.row([
            mib.into(),
            mean.into(),
            certain.into(),
            share,
            u64::from(simulated.most).into(),
        ]);
        #[expect(clippy::cast_precision_loss, reason = "a few steps")]
        progress((number + 1) as f64 / BLOCKS.len() as f64);
    }
    table
}

/// Rate of a stream on the current disk.
const TODAY: BitRate = BitRate(5_550_000);
/// Block sizes on the current disk, in MiB.
const BLOCKS: [u64; 4] = [1, 2, 4, 8];

fn bound(rate: BitRate) -> u64 {
    let cost = RoundCost {
        rate,
        revolution: Duration::from_micros(8_330),
        settle: Duration::from_micros(600),
        full_seek: Duration::from_millis(17),
    };
    cost.streams(MB, MPEG1)
}

/// The paper's parameter.
const INNER: BitRate = BitRate(120_000_000);
/// 100 MB in 7.8 s.
const MEASURED_MEAN: BitRate = BitRate(8_000_000_000 / 78);
/// 100 MB in 10.9 s.
const MEASURED_INNER: BitRate = BitRate(8_000_000_000 / 109);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seventy_sixty_eight_and_forty_four_and_what_is_certain_today() {
        let report = run(&mut |_| {});
        let ours = |row| report.tables[0].cell(row, "ours").cloned();
        assert_eq!(ours("Özden's bound, inner tracks as assumed"), Some(Cell::Count(70)));
        assert_eq!(ours("ratio of rates, measured mean"), Some(Cell::Count(68)));
        assert_eq!(ours("Özden's bound, inner tracks as measured"), Some(Cell::Count(44)));
        for (block, least) in [("4", 0.85), ("8", 0.9)] {
            let share = report.tables[1].cell(block, "share");
            assert!(matches!(share, Some(Cell::Number(share, _)) if *share >= least), "{share:?}");
        }
    }
}
