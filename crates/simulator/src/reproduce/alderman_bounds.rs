//! Alderman and Diallo's arithmetic: how many streams of 1.5 Mb/s their disk should hold.
//!
//! Their figures come out only with 1 MB = 10^6 bytes = 8 Mb throughout. The rates are those the
//! paper gives, not the disk model's.

use super::alderman::{MB, MPEG1};
use super::{Cell, Report, Table};
use disk::bounds::{RoundCost, ratio};
use std::time::Duration;
use units::BitRate;

pub(super) fn run(_: &mut dyn FnMut(f64)) -> Report {
    let mut table = Table::new(
        "streams",
        "Streams of 1.5 Mb/s, blocks of 1 MB",
        &[("by", "by"), ("rate", ">Mb/s"), ("paper", ">paper"), ("ours", ">ours")],
    );
    let rows = [
        ("Özden's bound, inner tracks as put in", INNER, Some(70), bound(INNER)),
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
        tables: vec![table],
        notes: vec![
            "The paper calls 120 Mb/s the inner tracks' rate, but measured 100 MB in 10.9 s there, \
             which is 73.4 Mb/s: with that the same bound gives 44. 120 Mb/s are even more than it \
             measured on the outer tracks (100 MB in 6.9 s, 116 Mb/s)."
                .to_owned(),
            "63 streams were measured. The bound charges a whole revolution to every block; with \
             the mean rate and half a revolution it would be 64."
                .to_owned(),
        ],
        figures: Vec::new(),
    }
}

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
    fn seventy_sixty_eight_and_forty_four() {
        let report = run(&mut |_| {});
        let ours = |row| report.tables[0].cell(row, "ours").cloned();
        assert_eq!(ours("Özden's bound, inner tracks as put in"), Some(Cell::Count(70)));
        assert_eq!(ours("ratio of rates, measured mean"), Some(Cell::Count(68)));
        assert_eq!(ours("Özden's bound, inner tracks as measured"), Some(Cell::Count(44)));
    }
}
