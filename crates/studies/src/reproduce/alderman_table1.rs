//! Alderman and Diallo's table 1: the most streams by each way of reading the raw disk, with the
//! distribution of round times at the first number that fails, and their sequential rates.
//!
//! The columns through a file system are not made here, there is no file system in a simulation:
//! `meter::emulated` makes them.

use super::alderman::{HALF_MB, MB, Way, most, their_disk, their_plan};
use super::scheduled::most_scheduled;
use super::{Cell, Figure, Report, Table};
use device::SimulatedDisk;
use disk::DiskModel;
use meter::report::spread_chart;
use meter::rounds::{RoundsOutcome, Spread};
use std::time::Duration;
use units::{ByteCount, Moment};

/// Row of the paper's table, raw I/O: our name, how ours is read, Solaris, FreeBSD, and whether
/// ours is a prediction or its piece size was chosen to meet the paper's number.
type PaperRow = (&'static str, Way, Option<u64>, Option<u64>, &'static str);

const ROWS: [PaperRow; 5] = [
    ("read, SCAN order", Way::Scan, Some(63), Some(63), PREDICTED),
    ("read, random order", Way::Arrival, None, None, PREDICTED),
    ("aio, pieces of 100 KB", Way::AtOnce(ByteCount(100_000)), Some(33), Some(33), FITTED),
    ("threads, pieces of 144 KB", Way::Threads(ByteCount(144_000)), Some(29), None, FITTED),
    ("threads, pieces of 500 KB", Way::Threads(ByteCount(500_000)), None, Some(49), FITTED),
];

const PREDICTED: &str = "predicted";
const FITTED: &str = "fitted: piece size";

/// Piece sizes tried, in thousands of bytes.
const PIECES: [u64; 7] = [50, 64, 100, 144, 200, 250, 500];

/// Blocks for Tenuto's own scheduler, in millions of bytes.
const BLOCKS: [u64; 3] = [1, 2, 4];

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let model = their_disk();
    let mut steps = Steps { progress, done: 0 };
    let (streams, failing) = by_way(&model, &mut steps);
    let figures = vec![drawn(&failing)];
    Report {
        source: "Alderman and Diallo, Optimizing Disk Performance for a Multimedia Storage \
                 Server, table 1 and section 5",
        method: "Streams of 1.5 Mb/s on a simulated ST39183W, starts spread over the disk, 100 \
                 rounds of 5.33 s; one stream more until more than one round ends after its \
                 strict deadline. 'Mean' is the paper's other rule: the mean round takes less \
                 than 5.33 s."
            .to_owned(),
        tables: vec![
            streams,
            by_piece(&model, &mut steps),
            by_tenuto(&model, &mut steps),
            at_first_failure(&failing),
            sequential(&model),
        ],
        notes: notes(),
        figures,
    }
}

fn by_way(model: &DiskModel, steps: &mut Steps<'_>) -> (Table, Vec<(&'static str, RoundsOutcome)>) {
    let mut table = Table::new(
        "streams",
        "Most streams, raw disk, blocks of 1 MB (last column: 512 KB)",
        &[
            ("method", "method"),
            ("solaris", ">Solaris"),
            ("freebsd", ">FreeBSD"),
            ("ours", ">ours"),
            ("ours_mean", ">ours, mean"),
            ("ours_half", ">ours, half block"),
            ("basis", "ours is"),
        ],
    );
    let mut failing = Vec::new();
    for (name, way, solaris, freebsd, basis) in ROWS {
        let found = most(model, way, MB, RoundsOutcome::holds);
        let mean = most(model, way, MB, RoundsOutcome::holds_in_the_mean).most;
        let half = most(model, way, HALF_MB, RoundsOutcome::holds).most;
        let ours = [found.most, mean, half].map(|most| Cell::from(u64::from(most)));
        let [strict, mean, half] = ours;
        table.row([name.into(), solaris.into(), freebsd.into(), strict, mean, half, basis.into()]);
        failing.push((name, found.failing));
        steps.next();
    }
    (table, failing)
}

fn by_piece(model: &DiskModel, steps: &mut Steps<'_>) -> Table {
    let mut table = Table::new(
        "pieces",
        "Asked for all at once: most streams by the size of the pieces that reads are cut into",
        &[("piece_kb", ">piece, KB"), ("in_order", ">in order"), ("random", ">random order")],
    );
    for piece in PIECES {
        let size = ByteCount(piece * 1000);
        let [in_order, random] = [Way::AtOnce(size), Way::Threads(size)]
            .map(|way| u64::from(most(model, way, MB, RoundsOutcome::holds).most));
        table.row([piece.into(), in_order.into(), random.into()]);
        steps.next();
    }
    table
}

fn by_tenuto(model: &DiskModel, steps: &mut Steps<'_>) -> Table {
    let mut table = Table::new(
        "tenuto",
        "Tenuto's scheduler: most streams with no late round in 1,000",
        &[
            ("block_mb", ">block, MB"),
            ("two_buffers", ">2 buffers a stream"),
            ("memory_mb", ">memory, MB"),
            ("three_buffers", ">3 buffers"),
            ("more_memory_mb", ">memory, MB"),
        ],
    );
    for block in BLOCKS {
        let plan = |streams| their_plan(model, streams, ByteCount(block * 1_000_000));
        let (two, memory) = most_scheduled(model, 62, 2, plan);
        let (three, more) = most_scheduled(model, 62, 3, plan);
        let megabytes = |bytes: ByteCount| Cell::from(bytes.0 / 1_000_000);
        table.row([
            block.into(),
            u64::from(two).into(),
            megabytes(memory),
            u64::from(three).into(),
            megabytes(more),
        ]);
        steps.next();
    }
    table
}

fn at_first_failure(failing: &[(&str, RoundsOutcome)]) -> Table {
    let mut table = Table::new(
        "first_failing",
        "Round times in s at the first number of streams that fails",
        &[
            ("method", "method"),
            ("streams", ">streams"),
            ("mean_s", ">mean"),
            ("sd_s", ">sd"),
            ("min_s", ">min"),
            ("max_s", ">max"),
        ],
    );
    for (name, outcome) in failing {
        let Spread { mean, sd, min, max } = outcome.round_times();
        let seconds = |time| Cell::Number(time, 2);
        let streams = Cell::from(outcome.streams.len() as u64);
        table.row([
            (*name).into(),
            streams,
            seconds(mean),
            seconds(sd),
            seconds(min),
            seconds(max),
        ]);
    }
    table
}

fn sequential(model: &DiskModel) -> Table {
    let mut table = Table::new(
        "sequential",
        "Seconds for 100 MB, read 1 MB at a time; the disk model's zones are made from these",
        &[("place", "place"), ("paper", ">paper"), ("ours", ">ours (input)")],
    );
    let size = model.capacity().0;
    let inner = units::align_down(size - 100 * MB.0, 4096);
    let places = [
        ("beginning of the disk", 6.9, read_through(model, 0, 100)),
        ("whole disk, mean", 7.8, read_through(model, 0, size / MB.0)),
        ("end of the disk", 10.9, read_through(model, inner, 100)),
    ];
    for (place, paper, ours) in places {
        table.row([place.into(), Cell::Number(paper, 1), Cell::Number(ours, 1)]);
    }
    table
}

/// Seconds for 100 MB, when so many blocks are read on from a place.
fn read_through(model: &DiskModel, from: u64, blocks: u64) -> f64 {
    let disk = SimulatedDisk::new(model);
    disk.advance_to(disk.ask(from, MB.0).expect("the disk is well"));
    // The first read includes positioning and is not timed.
    let start = disk.now();
    for block in 1..blocks {
        disk.advance_to(disk.ask(from + block * MB.0, MB.0).expect("the disk is well"));
    }
    per_hundred(start, disk.now(), blocks - 1)
}

fn per_hundred(start: Moment, end: Moment, blocks: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "as many as the disk has megabytes")]
    let hundreds = blocks as f64 / 100.0;
    end.since(start).as_secs_f64() / hundreds
}

fn drawn(failing: &[(&str, RoundsOutcome)]) -> Figure {
    let spreads: Vec<(f64, Spread)> = failing
        .iter()
        .map(|(_, outcome)| {
            #[expect(clippy::cast_precision_loss, reason = "few streams")]
            let x = outcome.streams.len() as f64;
            (x, outcome.round_times())
        })
        .collect();
    let deadline = failing.first().map_or(Duration::ZERO, |(_, outcome)| outcome.deadline);
    spread_chart(
        "first-failing",
        "Round times at the first number of streams that fails",
        "streams",
        &spreads,
        deadline,
        "One column for each way of reading, at the first number of streams that fails. Long columns \
         are ways whose rounds vary: they fail while their mean is still below the deadline.",
    )
}

fn notes() -> Vec<String> {
    [
        "aio and threads: the system divides a large read into pieces, and the pieces of all reads are \
         interleaved, so that each piece costs a positioning. The piece sizes in the table's rows are \
         assumptions, fitted to the paper's numbers; the paper gives none, and its two systems differ. \
         The next table shows other sizes. The disk serves in FIFO order; a drive that reorders its \
         queue would reach the same numbers with smaller pieces.",
        "Tenuto's rows: the batches of its scheduler (earliest deadline, then SCAN), with read-ahead \
         while memory is free. Two buffers per stream are the paper's memory: one block being read, \
         one being sent.",
        "Through a file system the paper has 25 and 53 (read), 23 and 39 (aio), 18 (threads), 31 \
         and 51 (mmap) for Solaris and FreeBSD, and 13.9 and 7.9 s for 100 MB. A simulation has no \
         file system: `tenuto reproduce alderman-table1 --emulated` has four.",
    ]
    .map(str::to_owned)
    .into()
}

/// How far it has come.
struct Steps<'a> {
    progress: &'a mut dyn FnMut(f64),
    done: u32,
}

impl Steps<'_> {
    fn next(&mut self) {
        self.done += 1;
        let all = ROWS.len() + PIECES.len() + BLOCKS.len();
        #[expect(clippy::cast_precision_loss, reason = "a few steps")]
        let all = all as f64;
        (self.progress)(f64::from(self.done) / all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(cell: Option<&Cell>) -> u64 {
        match cell {
            Some(Cell::Count(count)) => *count,
            other => panic!("{other:?} is no count"),
        }
    }

    #[test]
    fn the_simulated_disk_holds_what_the_papers_disk_held() {
        let model = their_disk();
        let streams = |way| most(&model, way, MB, RoundsOutcome::holds).most;
        let scan = streams(Way::Scan);
        assert!((62..=64).contains(&scan), "63 in the paper: {scan}");
        let random = streams(Way::Arrival);
        assert!((57..=60).contains(&random), "{random}");
        let sequential = sequential(&model);
        for row in &sequential.rows {
            let [_, Cell::Number(paper, _), Cell::Number(ours, _)] = &row[..] else { panic!() };
            assert!((paper - ours).abs() / paper < 0.05, "{row:?}");
        }
    }

    #[test]
    fn our_scheduler_has_no_late_round_in_a_thousand() {
        let model = their_disk();
        let table = by_tenuto(&model, &mut Steps { progress: &mut |_| {}, done: 0 });
        for (block, least) in [("1", 61), ("2", 64), ("4", 65)] {
            let held = count(table.cell(block, "two_buffers"));
            assert!(held >= least, "{held} at {block} MB");
        }
    }
}
