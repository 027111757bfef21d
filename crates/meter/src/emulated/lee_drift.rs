//! Lee and Srivastava's figure 5 on the emulated disk: the drift of frames with 1 to 20 streams, in
//! growing reads of the raw disk (their PFS), and frame by frame through file systems with the
//! kernel's read-ahead (their UFS).

use super::bench::{Attempt, Bench, system_name};
use super::filled::Filled;
use super::ways::{self, Way};
use super::{Cost, EmulatedOptions, EmulatedResult, MPEG1, lateness};
use crate::error::MeterError;
use crate::report::{Cell, Figure, LineShape, Plot, Report, Series, Table, cell};
use crate::rounds::{FrameDrift, RoundPace, RoundsPlan, fewest_units, run as run_rounds};
use crate::target::SimulatedPort;
use device::SimulatedDisk;
use disk::DiskModel;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The rate of a motion JPEG stream of the paper (R): 540 KB/s.
pub const MJPEG: BitRate = BitRate(540_000 * 8);

/// A frame of such a stream, 640 by 480: about 18 KB, 30 a second.
pub const MJPEG_FRAME: ByteCount = ByteCount(18_000);

/// Streams in the paper's figure.
const MOST: u32 = 20;

/// Frames of a stream for each round that the options ask for: a minute for 100 rounds.
const FRAMES_A_ROUND: u32 = 18;

/// The cost of playing each number of streams on each system.
pub(super) fn cost(options: &EmulatedOptions) -> Cost {
    let ways = MOST * u32::try_from(options.systems.len()).expect("a few");
    let played = MJPEG_FRAME.time_at(MJPEG) * FRAMES_A_ROUND * options.rounds * ways;
    let rounds = played.as_secs_f64() / options.block.time_at(MPEG1).as_secs_f64();
    let rounds = u32::try_from(units::rounded(rounds)).unwrap_or(u32::MAX);
    Cost { ways, rounds, sequential: 0 }
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<EmulatedResult, MeterError> {
    let mut table = Table::new("drift", "Drift of a stream");
    let mut lines = Vec::new();
    let done = fill(bench, &mut table, &mut lines);
    let plot = Plot::new("Accumulated drift factor", "streams", "seconds", lines);
    let explanation = "The sum of the times by which a stream's frames are late.".to_owned();
    let report = Report {
        source: "Lee and Srivastava, Experiences with Evaluating System QoS and Channel \
                 Performance on Media-On-Demand Systems, section 5.2 and figure 5"
            .to_owned(),
        method: format!(
            "{} s of streams of 540 KB/s in frames of 18 KB on an emulated ST39183W, which stands \
             in for the paper's unnamed disk, and on file systems on it, {} times as fast \
             as the disk; all figures in the disk's time. Raw: in each cycle one read a stream in \
             SCAN order, with the fewest frames a read that hold the streams in virtual time. File \
             systems: a thread for each stream reads frame by frame, with a read-ahead of 128 KiB.",
            frames_of(bench.options) / 30,
            bench.options.speed
        ),
        tables: vec![table],
        notes: lateness(bench),
        figures: vec![Figure { name: "accumulated", plot, explanation }],
    };
    let mut made = EmulatedResult::of(bench, report, done)?;
    made.report.notes.push(
        "The frame of a number is requested when all streams have the frame before it, so that \
         one late stream delays all."
            .to_owned(),
    );
    Ok(made)
}

fn fill(
    bench: &mut Bench<'_>,
    table: &mut Table,
    lines: &mut Vec<Series>,
) -> Result<(), MeterError> {
    if bench.options.has_raw() {
        lines.push(each_number(bench, table, None)?);
    }
    for kind in bench.options.file_systems().collect::<Vec<_>>() {
        let mut filled = bench.fill(kind)?;
        lines.push(each_number(bench, table, Some(&mut filled))?);
    }
    Ok(())
}

/// Plays each number of streams on one system.
fn each_number(
    bench: &mut Bench<'_>,
    table: &mut Table,
    mut on: Option<&mut Filled>,
) -> Result<Series, MeterError> {
    let system = system_name(on.as_deref());
    let (mut frames, mut points) = (1, Vec::new());
    for streams in 1..=MOST {
        let way = if on.is_some() {
            &THREADS
        } else {
            // 23 streams are held; without a result the last size stays.
            frames = fewest_frames(&bench.model, streams, frames).unwrap_or(frames);
            &ways::SCAN
        };
        let attempt = Attempt {
            block: ByteCount(MJPEG_FRAME.0 * u64::from(frames)),
            rate: MJPEG,
            rounds: frames_of(bench.options).div_ceil(frames),
            pace: RoundPace::Rounds,
            rule: None,
        };
        bench.reset_statistics();
        let outcome = bench.rounds(way, on.as_deref_mut(), streams, attempt)?;
        let drift = FrameDrift::of(&outcome, frames, MJPEG_FRAME.time_at(MJPEG));
        let seconds = |time: Duration| Cell::Number(time.as_secs_f64(), 3);
        table.add([
            cell("system", "system", system),
            cell("streams", ">streams", streams),
            cell("frames", ">frames a read", frames),
            cell("adf_s", ">ADF, s", seconds(drift.accumulated)),
            cell("cdf_s", ">CDF, s", seconds(drift.consecutive)),
            cell("lost_percent", ">lost, %", Cell::Number(drift.loss() * 100.0, 2)),
            cell("disk_late_p99_ms", ">late p99, ms", super::p99_ms(&bench.disk.statistics())),
        ]);
        points.push((f64::from(streams), drift.accumulated.as_secs_f64()));
        bench.done += 1;
        let (adf, lost) = (drift.accumulated.as_secs_f64(), drift.loss() * 100.0);
        let found = format!("{system}, {streams} streams: ADF {adf:.3} s, {lost:.2} % lost");
        bench.tell(&found, true);
    }
    Ok(Series::new(system, LineShape::Dots, points))
}

/// The fewest frames in a read, from `least` on, with which the raw disk holds so many streams in
/// virtual time; `None` if it does not with two minutes of frames.
pub fn fewest_frames(model: &DiskModel, streams: u32, least: u32) -> Option<u32> {
    fewest_units(least, LONGEST, |frames| {
        let block = ByteCount(MJPEG_FRAME.0 * u64::from(frames));
        let plan = RoundsPlan::spread(streams, model.capacity(), block, MJPEG);
        let mut port = SimulatedPort::new(SimulatedDisk::new(model));
        run_rounds(&plan, &mut port, &mut |_| true).is_ok_and(|outcome| outcome.holds())
    })
}

fn frames_of(options: &EmulatedOptions) -> u32 {
    FRAMES_A_ROUND * options.rounds
}

/// The largest read tried, in frames: two minutes of one stream.
const LONGEST: u32 = 3600;

/// A thread for each stream, as the paper's I/O manager for each client.
const THREADS: Way = Way {
    name: "threads, 128 KiB ahead",
    method: device::Method::Threads,
    order: crate::rounds::Order::Streams,
    at_once: ways::ALL,
    read_ahead_kib: Some(128),
};
