//! Alderman and Diallo's bounds: how many streams of 1.5 Mb/s their disk should hold by arithmetic,
//! and how many a current disk.
//!
//! Their figures come out only with 1 MB = 10^6 bytes = 8 Mb throughout. The rates are those the
//! paper gives, not the disk model's.

use super::alderman::{MB, MPEG1, Way, rounds};
use super::{Cell, Report, Table, texts};
use disk::DiskModel;
use disk::bounds::{RoundCost, ratio};
use meter::report::cell;
use meter::rounds::{RoundsOutcome, RoundsPlan, most_streams};
use std::convert::Infallible;
use std::time::Duration;
use units::{BitRate, ByteCount, float};

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let rows = [
        ("Özden's bound, inner tracks as assumed", INNER, Some(70_u64), bound(INNER)),
        ("ratio of rates, measured mean", MEASURED_MEAN, Some(68), ratio(MEASURED_MEAN, MPEG1)),
        ("Özden's bound, inner tracks as measured", MEASURED_INNER, None, bound(MEASURED_INNER)),
        ("Özden's bound, measured mean", MEASURED_MEAN, None, bound(MEASURED_MEAN)),
    ];
    let cells = rows.map(|(by, rate, paper, ours)| {
        [
            cell("by", "by", by),
            cell("rate", ">Mb/s", Cell::Number(float(rate.0) / 1e6, 1)),
            cell("paper", ">paper", paper),
            cell("ours", ">ours", ours),
        ]
    });
    let streams = Table::of("streams", "Streams of 1.5 Mb/s, blocks of 1 MB", cells);
    texts::report("alderman-bounds", vec![streams, today(progress)], Vec::new())
}

/// Computes the bounds for a current disk.
fn today(progress: &mut dyn FnMut(f64)) -> Table {
    let model = DiskModel::preset("hdd-20tb").expect("a built-in model");
    let rows = (1_u32..).zip(BLOCKS).map(|(number, mib)| {
        let block = ByteCount::mib(mib);
        let mean = model.usual_streams(block, TODAY);
        let certain = model.zone_exact_streams(block, TODAY);
        let attempt = |streams| {
            let plan = RoundsPlan::spread(streams, model.capacity(), block, TODAY);
            Ok::<_, Infallible>(rounds(&model, Way::Scan, plan))
        };
        let about = u32::try_from(mean).unwrap_or(u32::MAX);
        let Ok(simulated) = most_streams(about, RoundsOutcome::holds, attempt);
        progress(f64::from(number) / BLOCKS.len() as f64);
        [
            cell("block_mib", ">block, MiB", mib),
            cell("mean", ">mean", mean),
            cell("certain", ">certain", certain),
            cell("share", ">certain/mean", Cell::Number(float(certain) / float(mean), 2)),
            cell("simulated", ">simulated", simulated.most),
        ]
    });
    Table::of("today", "Streams of 5.55 Mb/s on a disk of 20 TB", rows)
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
