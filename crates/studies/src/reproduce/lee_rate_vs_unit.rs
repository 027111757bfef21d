//! Lee and Srivastava's figure 3: the rate of reading by the size of the unit and the number of
//! units in a read, on a raw disk (their PFS), against the level of their UFS.
//!
//! The figure is not in numbers; what the text says of it is compared. UFS itself is not simulated.

use super::claims::{Claims, Direction, Size};
use super::lee::{FRAME, MJPEG, rate_of_units, stand_in};
use super::{Cell, Figure, Report, Table};
use meter::report::{LineShape, Plot, Series};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Host time for each read, fitted so that the rates of raw disk and file system cross where they
/// do in the paper.
const HOST: Duration = Duration::from_micros(500);

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
    let mut claims = Claims::titled(
        "Claims of the text about the figure; fitted: the host's time (a fall within 1 % is none)",
    );
    // The smallest unit with which the raw disk is faster, in KB.
    let overtakes = |group| {
        let mut units = (1..=128).map(|n| ByteCount(n * 500));
        units.find(|unit| rate(*unit, group) > UFS).map(kilobytes)
    };
    let text = |unit: Option<f64>| unit.map_or("never".to_owned(), |unit| format!("{unit:.1} KB"));
    let (one, four) = (overtakes(1), overtakes(4));
    claims.add(
        "3",
        "the raw disk overtakes UFS at units of 8 to 10 KB",
        text(one),
        Direction::Fitted,
        one.map(|unit| Size::within(8.0, 10.0, unit, " KB").fitted()),
    );
    let smaller = four.zip(one).is_some_and(|(four, one)| four < one);
    let both = format!("{}, {} with four", text(one), text(four));
    claims.direction("3", "with more units a read it does at smaller units", both, smaller);
    let frame = format!("{:.1} MB/s, UFS {:.1}", megabytes(rate(FRAME, 1)), megabytes(UFS));
    let says = "with frames of 18 KB the raw disk is faster than UFS";
    claims.add("3", says, frame, Direction::Fitted, None);
    let almost = |least: BitRate, of: BitRate| least.0 <= of.0 + of.0 / 100;
    let rates: Vec<_> = UNITS.iter().map(|unit| rate(ByteCount(unit * 1000), 1)).collect();
    let rises = rates.windows(2).all(|pair| almost(pair[0], pair[1]));
    let range = format!("{:.1} to {:.1} MB/s", megabytes(rates[0]), megabytes(rates[11]));
    claims.direction("3", "the rate rises with the unit", range, rises);
    let more = UNITS.iter().all(|unit| {
        let size = ByteCount(unit * 1000);
        almost(rate(size, 1), rate(size, 4))
    });
    let says = "the more units a read, the higher the rate";
    claims.direction("3", says, "one and four units a read".to_owned(), more);
    claims.into_table()
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
        let verdicts = claims.rows.iter().map(|row| format!("{}/{}", row[3], row[7]));
        let verdicts: Vec<String> = verdicts.collect();
        assert_eq!(
            verdicts.join("; "),
            "fitted/fitted; yes/-; fitted/-; yes/-; yes/-",
            "{claims:#?}"
        );
        let crossing = claims.rows[0][2].to_string();
        let kb: f64 = crossing.trim_end_matches(" KB").parse().unwrap();
        assert!((8.0..=10.0).contains(&kb), "{crossing}");
    }
}
