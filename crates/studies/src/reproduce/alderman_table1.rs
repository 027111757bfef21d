//! Alderman and Diallo's table 1: the most streams by each way of reading the raw disk, with the
//! distribution of round times at the first number that fails, and their sequential rates.
//!
//! The columns through a file system are not made here, there is no file system in a simulation:
//! `meter::emulated` makes them.

use super::alderman::{HALF_MB, MB, Way, most, their_disk, their_plan};
use super::scheduled::most_scheduled;
use super::{Cell, Figure, Report, Table, texts};
use disk::DiskModel;
use meter::report::{cell, spread_cells, spread_chart};
use meter::rounds::{RoundsOutcome, Spread};
use std::time::Duration;
use units::{ByteCount, Moment, float};

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

/// The one distribution that the paper prints (section 5.1), of reads through a file system, which
/// is not simulated.
const PAPER_UFS: Spread = Spread { mean: 4.07, sd: 0.49, min: 1.44, max: 7.6 };

/// Blocks for Tenuto's own scheduler, in millions of bytes.
const BLOCKS: [u64; 3] = [1, 2, 4];

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let model = their_disk();
    let mut steps = Steps { progress, done: 0 };
    let (streams, failing) = by_way(&model, &mut steps);
    let pieces = by_piece(&model, &mut steps);
    let tenuto = by_tenuto(&model, &mut steps);
    let tables = vec![streams, pieces, tenuto, at_first_failure(&failing), sequential(&model)];
    texts::report("alderman-table1", tables, vec![drawn(&failing)])
}

fn by_way(model: &DiskModel, steps: &mut Steps<'_>) -> (Table, Vec<(&'static str, RoundsOutcome)>) {
    let mut failing = Vec::new();
    let rows = ROWS.map(|(name, way, solaris, freebsd, basis)| {
        let found = most(model, way, MB, RoundsOutcome::holds);
        let mean = most(model, way, MB, RoundsOutcome::holds_in_the_mean).most;
        let half = most(model, way, HALF_MB, RoundsOutcome::holds).most;
        failing.push((name, found.failing));
        steps.next();
        [
            cell("method", "method", name),
            cell("solaris", ">Solaris", solaris),
            cell("freebsd", ">FreeBSD", freebsd),
            cell("ours", ">ours", found.most),
            cell("ours_mean", ">ours, mean", mean),
            cell("ours_half", ">ours, half block", half),
            cell("basis", "ours is", basis),
        ]
    });
    let title = "Most streams, raw disk, blocks of 1 MB (last column: 512 KB)";
    (Table::of("streams", title, rows), failing)
}

fn by_piece(model: &DiskModel, steps: &mut Steps<'_>) -> Table {
    let rows = PIECES.map(|piece| {
        let size = ByteCount(piece * 1000);
        let held = |way| most(model, way, MB, RoundsOutcome::holds).most;
        let (in_order, random) = (held(Way::AtOnce(size)), held(Way::Threads(size)));
        steps.next();
        [
            cell("piece_kb", ">piece, KB", piece),
            cell("in_order", ">in order", in_order),
            cell("random", ">random order", random),
        ]
    });
    let title =
        "Asked for all at once: most streams by the size of the pieces that reads are cut into";
    Table::of("pieces", title, rows)
}

fn by_tenuto(model: &DiskModel, steps: &mut Steps<'_>) -> Table {
    let rows = BLOCKS.map(|block| {
        let plan = |streams| their_plan(model, streams, ByteCount(block * 1_000_000));
        // 62 is near the result: the search goes from there one stream at a time, 1,000 rounds
        // each.
        let (two, memory) = most_scheduled(model, 62, 2, plan);
        let (three, more) = most_scheduled(model, 62, 3, plan);
        steps.next();
        [
            cell("block_mb", ">block, MB", block),
            cell("two_buffers", ">2 buffers a stream", two),
            cell("memory_mb", ">memory, MB", memory.0 / 1_000_000),
            cell("three_buffers", ">3 buffers", three),
            cell("more_memory_mb", ">memory, MB", more.0 / 1_000_000),
        ]
    });
    let title = "Tenuto's scheduler: most streams with no late round in 1,000";
    Table::of("tenuto", title, rows)
}

fn at_first_failure(failing: &[(&str, RoundsOutcome)]) -> Table {
    let row = |name, streams: usize, times| {
        let cells = [cell("method", "method", name), cell("streams", ">streams", streams)];
        cells.into_iter().chain(spread_cells(times))
    };
    let ours = failing
        .iter()
        .map(|(name, outcome)| row(*name, outcome.streams.len(), outcome.round_times()));
    let rows = ours.chain([row("read through UFS, Solaris (paper)", 23, PAPER_UFS)]);
    let title = "Round times in s at the first number of streams that fails";
    Table::of("first_failing", title, rows)
}

fn sequential(model: &DiskModel) -> Table {
    let size = model.capacity().0;
    // The last 100 MB. Offsets are multiples of 4,096 bytes, which the capacity less 100 MB need
    // not be.
    let inner = units::align_down(size - 100 * MB.0, 4096);
    let places = [
        ("beginning of the disk", 6.9, read_through(model, 0, 100)),
        ("whole disk, mean", 7.8, read_through(model, 0, size / MB.0)),
        ("end of the disk", 10.9, read_through(model, inner, 100)),
    ];
    let rows = places.map(|(place, paper, ours)| {
        [
            cell("place", "place", place),
            cell("paper", ">paper", Cell::Number(paper, 1)),
            cell("ours", ">ours (input)", Cell::Number(ours, 1)),
        ]
    });
    let title =
        "Seconds for 100 MB, read 1 MB at a time; the disk model's zones are made from these";
    Table::of("sequential", title, rows)
}

/// Seconds for 100 MB, when so many blocks are read on from a place.
fn read_through(model: &DiskModel, from: u64, blocks: u64) -> f64 {
    let mut head = model.head();
    // The first read includes positioning and is not timed.
    let start = head.serve(Moment::ZERO, from, MB.0, false).finish;
    let end = (1..blocks)
        .fold(start, |now, block| head.serve(now, from + block * MB.0, MB.0, false).finish);
    end.since(start).as_secs_f64() / (float(blocks - 1) / 100.0)
}

fn drawn(failing: &[(&str, RoundsOutcome)]) -> Figure {
    let spread = |(_, outcome): &(&str, RoundsOutcome)| {
        (outcome.streams.len() as f64, outcome.round_times())
    };
    let spreads: Vec<(f64, Spread)> = failing.iter().map(spread).collect();
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

/// How far it has come.
struct Steps<'a> {
    progress: &'a mut dyn FnMut(f64),
    done: u32,
}

impl Steps<'_> {
    fn next(&mut self) {
        self.done += 1;
        let all = ROWS.len() + PIECES.len() + BLOCKS.len();
        (self.progress)(f64::from(self.done) / all as f64);
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
