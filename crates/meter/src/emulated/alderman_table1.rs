//! Alderman and Diallo's table 1 and their sequential rates on the emulated disk: raw by the
//! kernel's interfaces for reading, and through current file systems in place of FFS and UFS.

use super::bench::{Bench, MPEG1, MostStreams, RoundRule};
use super::ways::{self, Way};
use super::{Cost, EmulatedOptions, EmulatedResult, lateness, p99_ms, papers};
use crate::error::MeterError;
use crate::report::{Cell, Figure, Report, Table, cell, spread_cells, spread_chart};
use crate::rounds::{RoundsOutcome, RoundsPlan, Spread, most_streams, run as run_rounds};
use crate::target::SimulatedPort;
use device::SimulatedDisk;
use std::convert::Infallible;
use std::time::Duration;

/// The cost of one search for each read method, and one sequential read for each system.
pub(super) fn cost(options: &EmulatedOptions) -> Cost {
    let few = |count: usize| u32::try_from(count).expect("a few");
    let raw = if options.has_raw() { few(ways::RAW.len()) } else { 0 };
    let systems = few(options.file_systems().count());
    let files = systems * few(ways::FILES.len());
    let sequential = systems + u32::from(options.has_raw());
    // On the raw disk the short first attempt predicts the result. File systems read ahead in ways
    // that it does not predict, so that more counts are tried.
    let rounds = raw * (options.rounds + 24) + files * (2 * options.rounds + 30);
    Cost { ways: raw + files + sequential, rounds, sequential }
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<EmulatedResult, MeterError> {
    let (mut tables, mut notes) = (Tables::new(), Vec::new());
    let done = fill(bench, &mut tables, &mut notes);
    notes.extend(lateness(bench));
    let report = Report {
        source: "Alderman and Diallo, Optimizing Disk Performance for a Multimedia Storage \
                 Server, table 1 and section 5.2"
            .to_owned(),
        method: method(bench.options),
        figures: vec![drawn(&tables.failing)],
        tables: vec![tables.streams, tables.first_failing, tables.sequential],
        notes,
    };
    EmulatedResult::of(bench, report, done)
}

fn fill(
    bench: &mut Bench<'_>,
    tables: &mut Tables,
    notes: &mut Vec<String>,
) -> Result<(), MeterError> {
    if bench.options.has_raw() {
        for (way, solaris, freebsd) in ways::RAW {
            let found = bench.most(&way, None, RoundRule::OneLate)?;
            let simulated = simulated(bench, &way);
            if let (ways::SCAN_NAME, Some(simulated)) = (way.name, simulated) {
                notes.push(apart(found.capacity.most, simulated));
            }
            let paper = papers(bench.options, [solaris, freebsd]);
            tables.streams("raw", way.name, paper, simulated, found);
        }
        let seconds = bench.sequential(None)?;
        tables.sequential("raw", [Some(7.8), Some(7.8)], seconds);
    }
    let file_systems: Vec<_> = bench.options.file_systems().collect();
    for &kind in &file_systems {
        let mut filled = bench.fill(kind)?;
        let seconds = bench.sequential(Some(&mut filled))?;
        tables.sequential(kind.name(), [Some(13.9), Some(7.9)], seconds);
        for (way, solaris, freebsd) in ways::FILES {
            let found = bench.most(&way, Some(&mut filled), RoundRule::OneLate)?;
            let paper = papers(bench.options, [solaris, freebsd]);
            tables.streams(kind.name(), way.name, paper, None, found);
        }
    }
    if !file_systems.is_empty() {
        tables.printed();
    }
    Ok(())
}

fn method(options: &EmulatedOptions) -> String {
    let round = options.block.time_at(MPEG1).as_secs_f64();
    format!(
        "Streams of 1.5 Mb/s on an emulated ST39183W (raw: starts spread over the disk; file \
         systems: filled with files of 100 MB, used in another order than they were written in, \
         mounted anew before each attempt, a file for each stream), blocks of {}, {} rounds of \
         {round:.2} s, {} times as fast as the disk, all figures in the disk's time. Held: at most \
         one round ends after its strict deadline.",
        super::decimal(options.block),
        options.rounds,
        options.speed
    )
}

/// The streams that the simulated disk holds, for methods that it can model: searched upwards one
/// at a time, in whole pages as direct reads are.
fn simulated(bench: &Bench<'_>, way: &Way) -> Option<u32> {
    if way.at_once == ways::ALL {
        return None;
    }
    let options = bench.options;
    let attempt = |streams| {
        let spread = RoundsPlan::spread(streams, bench.model.capacity(), options.block, MPEG1);
        let plan =
            RoundsPlan { rounds: options.rounds, order: way.order, at_once: way.at_once, ..spread };
        let mut port = SimulatedPort::new(SimulatedDisk::new(&bench.model)).by_pages();
        Ok::<_, Infallible>(
            run_rounds(&plan, &mut port, &mut |_| true).expect("a disk without faults reads"),
        )
    };
    let Ok(found) = most_streams(ABOUT, RoundsOutcome::holds, attempt);
    Some(found.most)
}

fn apart(emulated: u32, simulated: u32) -> String {
    let percent = (f64::from(emulated) / f64::from(simulated) - 1.0) * 100.0;
    format!(
        "Reading raw in SCAN order, the emulated disk holds {emulated} streams and the simulated one \
         {simulated}: {percent:+.1} %."
    )
}

/// All tables of the report, which grow row by row.
struct Tables {
    streams: Table,
    first_failing: Table,
    sequential: Table,
    failing: Vec<RoundsOutcome>,
}

impl Tables {
    fn new() -> Self {
        Self {
            streams: Table::new("streams", "Most streams"),
            first_failing: Table::new(
                "first_failing",
                "Round times in s at the first number of streams that fails",
            ),
            sequential: Table::new(
                "sequential",
                "Seconds for 100 MB, read 1 MB after another, mean of 8 places all over the disk",
            ),
            failing: Vec::new(),
        }
    }

    /// The one distribution that the paper prints (section 5.1), beside those of file systems.
    fn printed(&mut self) {
        let spread = Spread { mean: 4.07, sd: 0.49, min: 1.44, max: 7.6 };
        self.fails("UFS, Solaris (paper)", ways::READ.name, 23, None, spread);
    }

    fn streams(
        &mut self,
        system: &str,
        method: &str,
        [solaris, freebsd]: [Cell; 2],
        simulated: Option<u32>,
        MostStreams { capacity, disk }: MostStreams,
    ) {
        let failing = capacity.failing;
        self.streams.add([
            cell("system", "system", system),
            cell("method", "method", method),
            cell("solaris", ">Solaris", solaris),
            cell("freebsd", ">FreeBSD", freebsd),
            cell("simulated", ">simulated", simulated),
            cell("emulated", ">emulated", capacity.most),
            cell("disk_late_p99_ms", ">late p99, ms", p99_ms(&disk)),
        ]);
        let (streams, rounds) = (failing.streams.len(), failing.rounds.len());
        self.fails(system, method, streams, Some(rounds), failing.round_times());
        self.failing.push(failing);
    }

    fn fails(
        &mut self,
        system: &str,
        method: &str,
        streams: usize,
        rounds: Option<usize>,
        times: Spread,
    ) {
        let about = [
            cell("system", "system", system),
            cell("method", "method", method),
            cell("streams", ">streams", streams),
            cell("rounds", ">rounds", rounds),
        ];
        self.first_failing.add(about.into_iter().chain(spread_cells(times)));
    }

    fn sequential(&mut self, system: &str, paper: [Option<f64>; 2], ours: f64) {
        let number = |time: f64| Cell::Number(time, 1);
        let [solaris, freebsd] = paper.map(|time| time.map(number));
        self.sequential.add([
            cell("system", "system", system),
            cell("solaris", ">Solaris", solaris),
            cell("freebsd", ">FreeBSD", freebsd),
            cell("emulated", ">emulated", number(ours)),
        ]);
    }
}

fn drawn(failing: &[RoundsOutcome]) -> Figure {
    let rows = (1..).map(f64::from).zip(failing.iter().map(RoundsOutcome::round_times));
    let spreads: Vec<(f64, Spread)> = rows.collect();
    let deadline = failing.first().map_or(Duration::ZERO, |outcome| outcome.deadline);
    spread_chart(
        "first-failing",
        "Round times at the first number of streams that fails",
        "row of the table",
        &spreads,
        deadline,
        "One column for each row of the table of round times, in its order. Long columns are ways \
         whose rounds differ: they fail while their mean is still below the deadline.",
    )
}

/// The count at which the simulated search begins.
const ABOUT: u32 = 58;
