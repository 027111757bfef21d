//! Lee and Srivastava's figure 3: the rate of reading by the size of the unit and the number of
//! units in a read, on a raw disk (their PFS), against the level of their UFS.
//!
//! The figure is not in numbers; what the text says of it is compared. UFS itself is not simulated.

use super::claims::Claims;
use super::lee::{FRAME, MJPEG, megabytes, rate_of_units, stand_in};
use super::{Cell, Report, Table, texts};
use meter::report::{LineShape, Series, cell};
use std::time::Duration;
use units::{BitRate, ByteCount, float};

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
    let rows =
        UNITS.map(|unit| GROUPS.map(|group| megabytes(rate(ByteCount(unit * 1000), group).0)));
    progress(0.9);
    let cells = UNITS.into_iter().zip(rows).map(|(unit, [one, two, four])| {
        [
            cell("unit_kb", ">unit, KB", unit),
            cell("one", ">1 a read", Cell::Number(one, 2)),
            cell("two", ">2 a read", Cell::Number(two, 2)),
            cell("four", ">4 a read", Cell::Number(four, 2)),
        ]
    });
    let table = Table::of("rates", "MB/s by size of the unit and units in a read", cells);
    let line = |name: &str, group: usize| {
        let points = UNITS.into_iter().zip(rows).map(|(unit, rates)| (float(unit), rates[group]));
        Series::new(name, LineShape::Line, points.collect())
    };
    let series = vec![
        line("1 unit a read", 0),
        line("2 units a read", 1),
        line("4 units a read", 2),
        Series::new("UFS: 16 streams", LineShape::Limit, vec![(0.0, megabytes(UFS.0))]),
    ];
    let figure = texts::figure("rates", ["unit, KB", "MB/s"], series);
    texts::report("lee-rate-vs-unit", vec![claims(&rate), table], vec![figure])
}

fn claims(rate: &impl Fn(ByteCount, u64) -> BitRate) -> Table {
    let mut claims = Claims::titled(
        "lee-rate-vs-unit",
        "Claims of the text about the figure; fitted: the host's time (a fall within 1 % is none)",
    );
    // The smallest unit with which the raw disk is faster, in KB.
    let overtakes = |group| {
        let mut units = (1..=128).map(|n| ByteCount(n * 500));
        units.find(|unit| rate(*unit, group) > UFS).map(kilobytes)
    };
    let text = |unit: Option<f64>| unit.map_or("never".to_owned(), |unit| format!("{unit:.1} KB"));
    let one = overtakes(1);
    claims.add("3", text(one), None, one);
    let frame = format!("{:.1} MB/s, UFS {:.1}", megabytes(rate(FRAME, 1).0), megabytes(UFS.0));
    claims.add("3", frame, None, None);
    let almost = |least: BitRate, of: BitRate| least.0 <= of.0 + of.0 / 100;
    let rates: Vec<_> = UNITS.iter().map(|unit| rate(ByteCount(unit * 1000), 1)).collect();
    let rises = rates.windows(2).all(|pair| almost(pair[0], pair[1]));
    let range = format!("{:.1} to {:.1} MB/s", megabytes(rates[0].0), megabytes(rates[11].0));
    claims.add("3", range, rises, None);
    let more = UNITS.iter().all(|unit| {
        let size = ByteCount(unit * 1000);
        almost(rate(size, 1), rate(size, 4))
    });
    claims.add("3", "one and four units a read".to_owned(), more, None);
    claims.into_table()
}

fn kilobytes(size: ByteCount) -> f64 {
    float(size.0) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_text_says_comes_true() {
        let report = run(&mut |_| {});
        let claims = &report.tables[0];
        let verdicts: Vec<String> =
            claims.rows.iter().map(|row| format!("{}/{}", row[3], row[7])).collect();
        assert_eq!(verdicts.join("; "), "fitted/fitted; fitted/-; yes/-; yes/-", "{claims:#?}");
        let crossing = claims.rows[0][2].to_string();
        let kb: f64 = crossing.trim_end_matches(" KB").parse().unwrap();
        assert!((8.0..=10.0).contains(&kb), "{crossing}");
    }
}
