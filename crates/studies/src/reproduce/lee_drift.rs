//! Lee and Srivastava's figure 5: how late frames are shown (accumulated and consecutive drift
//! factors, loss) with 1 to 20 streams, read from a raw disk (their PFS) and through a file system
//! (their UFS).
//!
//! The figure is not in numbers; what the text says of it is compared.

use super::claims::Claims;
use super::lee::{FRAME, MJPEG, fewest_frames, rounds, stand_in};
use super::{Cell, Report, Table, texts};
use disk::DiskModel;
use meter::report::{LineShape, Series, cell};
use meter::rounds::{FrameDrift, RoundsPlan};
use units::ByteCount;

/// Streams in the paper's figure.
const MOST: u32 = 20;

/// Frames of a stream in a run: a minute.
const FRAMES: u32 = 1800;

/// Frames that the file system reads at once for a stream: 126 KB, in place of 128 KiB.
const CLUSTER: u32 = 7;

/// The part of the disk over which the files are spread, as in `lee-streams`.
const PART: u64 = 10;

/// The drift of so many streams on both systems.
struct Row {
    streams: u32,
    raw: FrameDrift,
    file_system: FrameDrift,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let model = stand_in();
    let (mut all, mut frames) = (Vec::new(), 1);
    for streams in 1..=MOST {
        frames = fewest_frames(&model, streams, frames).expect("23 streams are held");
        let area = ByteCount(model.capacity().0 / PART);
        all.push(Row {
            streams,
            raw: drift(&model, streams, model.capacity(), frames),
            file_system: drift(&model, streams, area, CLUSTER),
        });
        progress(f64::from(streams) / f64::from(MOST));
    }
    let line = |name, drift: fn(&Row) -> f64| {
        let points = all.iter().map(|row| (f64::from(row.streams), drift(row)));
        Series::new(name, LineShape::Dots, points.collect())
    };
    let figures = vec![
        texts::figure(
            "accumulated",
            ["streams", "seconds"],
            vec![
                line("file system (assumed)", |row| row.file_system.accumulated.as_secs_f64()),
                line("raw (PFS)", |row| row.raw.accumulated.as_secs_f64()),
            ],
        ),
        texts::figure(
            "consecutive",
            ["streams", "seconds"],
            vec![
                line("file system (assumed)", |row| row.file_system.consecutive.as_secs_f64()),
                line("raw (PFS)", |row| row.raw.consecutive.as_secs_f64()),
            ],
        ),
    ];
    texts::report("lee-drift", vec![claims(&all), table(&all)], figures)
}

fn drift(model: &DiskModel, streams: u32, size: ByteCount, frames: u32) -> FrameDrift {
    let block = ByteCount(FRAME.0 * u64::from(frames));
    let spread = RoundsPlan::spread(streams, size, block, MJPEG);
    let plan = RoundsPlan { rounds: FRAMES.div_ceil(frames), ..spread };
    FrameDrift::of(&rounds(model, plan), frames, FRAME.time_at(MJPEG))
}

fn table(all: &[Row]) -> Table {
    let seconds = |time: std::time::Duration| Cell::Number(time.as_secs_f64(), 3);
    let percent = |drift: &FrameDrift| Cell::Number(drift.loss() * 100.0, 2);
    let rows = all.iter().map(|row| {
        [
            cell("streams", ">streams", row.streams),
            cell("raw_adf_s", ">raw: ADF, s", seconds(row.raw.accumulated)),
            cell("raw_cdf_s", ">CDF, s", seconds(row.raw.consecutive)),
            cell("raw_lost_percent", ">lost, %", percent(&row.raw)),
            cell("fs_adf_s", ">file system: ADF, s", seconds(row.file_system.accumulated)),
            cell("fs_cdf_s", ">CDF, s", seconds(row.file_system.consecutive)),
            cell("fs_lost_percent", ">lost, %", percent(&row.file_system)),
        ]
    });
    Table::of("drift", "Drift of a stream in a minute, and frames a frame's time late", rows)
}

fn claims(all: &[Row]) -> Table {
    let mut claims = Claims::of("lee-drift");
    let [first, .., last] = all else { unreachable!("twenty rows") };
    let adf = |drift: &FrameDrift| format!("{:.3} s", drift.accumulated.as_secs_f64());
    let loss = |drift: &FrameDrift| format!("{:.2} %", drift.loss() * 100.0);
    let both = |one: String, two: String| format!("{one}, {two}");
    for part in [|row: &Row| row.file_system, |row: &Row| row.raw] {
        let worst = all.iter().max_by_key(|row| part(row).accumulated).expect("twenty rows");
        let most = format!("most {} with {}", adf(&part(worst)), worst.streams);
        let ours = format!("{}; {most}", both(adf(&part(first)), adf(&part(last))));
        let rises = all.is_sorted_by_key(|row| part(row).accumulated)
            && part(first).accumulated < part(last).accumulated;
        claims.add("5", ours, rises, None);
    }
    let (raw, files) = (&last.raw, &last.file_system);
    claims.add("5", both(loss(raw), loss(files)), raw.lost < files.lost, None);
    let (raw, files) = (&first.raw, &first.file_system);
    claims.add("5", both(loss(raw), loss(files)), raw.lost < files.lost, None);
    for part in [|row: &Row| row.raw, |row: &Row| row.file_system] {
        let (one, two) = (part(first), part(last));
        claims.add("5", both(loss(&one), loss(&two)), one.loss() < two.loss(), None);
    }
    claims.into_table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_drifts_and_the_raw_disk_does_not() {
        let report = run(&mut |_| {});
        let lost = |streams: &str, column| report.tables[1].cell(streams, column).cloned();
        assert_eq!(lost("20", "raw_lost_percent"), Some(Cell::Number(0.0, 2)));
        assert_ne!(lost("20", "fs_lost_percent"), Some(Cell::Number(0.0, 2)));
        assert_eq!(lost("16", "fs_lost_percent"), Some(Cell::Number(0.0, 2)));
        let verdicts: Vec<String> =
            report.tables[0].rows.iter().map(|row| row[3].to_string()).collect();
        assert_eq!(verdicts, ["no", "no", "fitted", "no", "no", "fitted"], "{report:#?}");
    }
}
