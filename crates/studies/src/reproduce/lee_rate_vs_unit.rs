//! Lee and Srivastava's figure 3: the rate of reading by the size of the unit and the number of
//! units in a read, on a raw disk (their PFS), against the level of their UFS.
//!
//! The figure is not in numbers; what the text says of it is compared. UFS itself is not simulated.

use super::lee::{FRAME, MJPEG, rate_of_units, stand_in};
use super::{Cell, Figure, Report, Table};
use meter::report::{LineShape, Plot, Series};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Host time for each read, fitted so that the rates of raw disk and file system cross where they
/// do in the paper.
const HOST: Duration = Duration::from_micros(500);

const FITTED: &str = "fitted: host's time";
const PREDICTED: &str = "predicted";

/// Units in a read.
const GROUPS: [u64; 3] = [1, 2, 4];

/// Sizes of a unit, in KB of 1,000 bytes.
const UNITS: [u64; 12] = [1, 2, 4, 6, 8, 10, 12, 16, 18, 24, 32, 64];

/// What 16 streams take, which the paper's UFS holds; 17 it does not hold.
const UFS: BitRate = BitRate(MJPEG.0 * 16);

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let model = stand_in();
    let rate = |unit: ByteCount, group| rate_of_units(&model, unit, group, HOST);
    let mut table = Table::new(
        "rates",
        "MB/s by size of the unit and units in a read",
        &[
            ("unit_kb", ">unit, KB"),
            ("one", ">1 a read"),
            ("two", ">2 a read"),
            ("four", ">4 a read"),
        ],
    );
    let mut points: [Vec<(f64, f64)>; 3] = Default::default();
    for unit in UNITS {
        let size = ByteCount(unit * 1000);
        let rates = GROUPS.map(|group| megabytes(rate(size, group)));
        for (points, rate) in points.iter_mut().zip(rates) {
            points.push((kilobytes(size), rate));
        }
        let [one, two, four] = rates.map(|rate| Cell::Number(rate, 2));
        table.row([unit.into(), one, two, four]);
    }
    progress(0.9);
    let [one, two, four] = points;
    let line =
        |name: &str, points| Series { name: name.to_owned(), shape: LineShape::Line, points };
    let plot = Plot {
        title: "Reading by units".to_owned(),
        x_label: "unit, KB".to_owned(),
        y_label: "MB/s".to_owned(),
        series: vec![
            line("1 unit a read", one),
            line("2 units a read", two),
            line("4 units a read", four),
            Series {
                name: "UFS: 16 streams".to_owned(),
                shape: LineShape::Limit,
                points: vec![(0.0, megabytes(UFS))],
            },
        ],
    };
    Report {
        source: "Lee and Srivastava, Experiences with Evaluating System QoS and Channel \
                 Performance on Media-On-Demand Systems, figure 3",
        method: "Units read one after another from a raw disk, a simulated ST39183W in place of \
                 the paper's unnamed one, with 0.5 ms of the host's time for each read. UFS is \
                 the rate of the 16 streams of 540 KB/s that it holds in the paper."
            .to_owned(),
        tables: vec![claims(&rate), table],
        notes: vec![
            "Eq. 2, r = r0 / (1 + r0 t0 / b), describes a disk that is idle between reads. This disk \
             reads ahead while the host is busy: the rate rises linearly up to the disk's own rate, \
             and t0 has no effect from there."
                .to_owned(),
            "The 0.5 ms are fitted to the paper's crossing; with 0.25 ms it would be at 6 KB. The \
             disk's rate is not fitted to this paper."
                .to_owned(),
        ],
        figures: vec![Figure {
            name: "rates",
            plot,
            explanation: "To the right of its crossing with UFS a raw disk is faster. Grouping \
                          moves the crossing to smaller units."
                .to_owned(),
        }],
    }
}

fn claims(rate: &impl Fn(ByteCount, u64) -> BitRate) -> Table {
    let mut table = Table::new(
        "claims",
        "Claims of the text about the figure (a difference within 1 % is no fall)",
        &[("claim", "claim"), ("paper", "paper"), ("ours", "ours"), ("basis", "ours is")],
    );
    let overtakes = |group| {
        let found = (1..=128).map(|n| n * 500).find(|unit| rate(ByteCount(*unit), group) > UFS);
        found.map_or_else(
            || "never".to_owned(),
            |unit| format!("{:.1} KB", kilobytes(ByteCount(unit))),
        )
    };
    let frame = megabytes(rate(FRAME, 1));
    let rises = |group: u64| {
        let rates: Vec<_> = UNITS.iter().map(|unit| rate(ByteCount(unit * 1000), group)).collect();
        rates.windows(2).all(|pair| pair[0].0 <= pair[1].0 + pair[1].0 / 100)
    };
    let says = |holds: bool| if holds { "yes" } else { "no" };
    let more = UNITS.iter().all(|unit| {
        let size = ByteCount(unit * 1000);
        rate(size, 4).0 >= rate(size, 1).0 - rate(size, 1).0 / 100
    });
    let rows = [
        ("raw overtakes UFS at units of", "8 to 10 KB", overtakes(1), FITTED),
        ("the same with four units a read", "smaller", overtakes(4), PREDICTED),
        ("frames of 18 KB: raw, MB/s", "above UFS", format!("{frame:.1}, UFS 8.6"), FITTED),
        ("the rate rises with the unit", "yes", says(rises(1)).to_owned(), PREDICTED),
        ("more units a read, a higher rate", "yes", says(more).to_owned(), PREDICTED),
    ];
    for (claim, paper, ours, basis) in rows {
        table.row([claim.into(), paper.into(), ours.into(), basis.into()]);
    }
    table
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn megabytes(rate: BitRate) -> f64 {
    rate.0 as f64 / 8e6
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn kilobytes(size: ByteCount) -> f64 {
    size.0 as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_text_says_comes_true() {
        let report = run(&mut |_| {});
        let claims = &report.tables[0];
        let ours = |claim: &str| claims.cell(claim, "ours").unwrap().to_string();
        let crossing = ours("raw overtakes UFS at units of");
        let kb: f64 = crossing.trim_end_matches(" KB").parse().unwrap();
        assert!((8.0..=10.0).contains(&kb), "{crossing}");
        assert_eq!(ours("the rate rises with the unit"), "yes");
        assert_eq!(ours("more units a read, a higher rate"), "yes");
    }
}
