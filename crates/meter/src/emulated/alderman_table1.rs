//! Alderman and Diallo's table 1 and their sequential rates on the emulated disk: raw by the
//! kernel's ways of reading, and through file systems of today in place of FFS and UFS.

use super::bench::{Bench, MB, MPEG1, Way};
use super::{EmulatedError, EmulatedOptions, ways};
use crate::report::{Cell, Figure, Plot, Report, Series, Shape, Table};
use crate::rounds::{Capacity, Outcome, Plan, Spread, most_streams, run as run_rounds};
use crate::target::SimulatedPort;
use device::SimulatedDisk;
use std::convert::Infallible;

/// A search for each way, and a sequential reading for each system.
pub(super) fn ways(options: &EmulatedOptions) -> u32 {
    let raw = if options.has_raw() { ways::RAW.len() + 1 } else { 0 };
    let files = options.file_systems().count() * (ways::FILES.len() + 1);
    u32::try_from(raw + files).expect("a few")
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Report, EmulatedError> {
    let (mut tables, mut notes) = (Tables::new(), Vec::new());
    match fill(bench, &mut tables, &mut notes) {
        Err(EmulatedError::Interrupted) if !tables.failing.is_empty() => {
            notes.push("Interrupted: these are the rows until then.".to_owned());
        }
        done => done?,
    }
    notes.extend(said(bench));
    Ok(Report {
        source: "Alderman and Diallo, Optimizing Disk Performance for a Multimedia Storage \
                 Server, table 1 and section 5.2",
        method: method(bench.options),
        figures: vec![drawn(&tables.failing)],
        tables: vec![tables.streams, tables.first_failing, tables.sequential],
        notes,
    })
}

fn fill(
    bench: &mut Bench<'_>,
    tables: &mut Tables,
    notes: &mut Vec<String>,
) -> Result<(), EmulatedError> {
    if bench.options.has_raw() {
        for (way, solaris, freebsd) in ways::RAW {
            let found = bench.most(&way, None, ABOUT, Outcome::holds)?;
            let simulated = simulated(bench, &way);
            if let (ways::SCAN_NAME, Some(simulated)) = (way.name, simulated) {
                notes.push(apart(found.most, simulated));
            }
            tables.streams(("raw", way.name), (solaris, freebsd), simulated, &found);
        }
        let seconds = bench.sequential(None)?;
        tables.sequential("raw", [Some(7.8), Some(7.8)], seconds);
    }
    for kind in bench.options.file_systems().collect::<Vec<_>>() {
        let mut filled = bench.fill(kind)?;
        let seconds = bench.sequential(Some(&mut filled))?;
        tables.sequential(kind.name(), [Some(13.9), Some(7.9)], seconds);
        for (way, solaris, freebsd) in ways::FILES {
            let found = bench.most(&way, Some(&mut filled), ABOUT, Outcome::holds)?;
            tables.streams((kind.name(), way.name), (solaris, freebsd), None, &found);
        }
    }
    Ok(())
}

fn method(options: &EmulatedOptions) -> String {
    format!(
        "Streams of 1.5 Mb/s on an emulated ST39183W (raw: starts spread over the disk; file \
         systems: filled with files of 100 MB, used in another order than they were written in, \
         mounted anew before each attempt, a file for each stream), blocks of 1 MB, {} rounds of \
         5.33 s, {} times as fast as the disk, all figures in the disk's time. Held: at most one \
         round ends after its strict deadline. 'By the mean' is what the mean round of the first \
         number that fails would let in: about the paper's other rule.",
        options.rounds, options.speed
    )
}

/// Where the simulated disk reads so: one more at a time, as there.
fn simulated(bench: &Bench<'_>, way: &Way) -> Option<u32> {
    let few = way.few()?;
    let attempt = |streams| {
        let spread = Plan::spread(streams, bench.model.capacity(), MB, MPEG1);
        let plan = Plan { rounds: bench.options.rounds, order: way.order, at_once: few, ..spread };
        let mut port = SimulatedPort::new(SimulatedDisk::new(&bench.model));
        Ok::<_, Infallible>(
            run_rounds(&plan, &mut port, &mut |_| true).expect("a disk without faults reads"),
        )
    };
    let Ok(found) = most_streams(ABOUT, Outcome::holds, attempt);
    Some(found.most)
}

fn apart(emulated: u32, simulated: u32) -> String {
    let percent = (f64::from(emulated) / f64::from(simulated) - 1.0) * 100.0;
    format!(
        "Reading raw in SCAN order, the emulated disk holds {emulated} streams and the simulated one \
         {simulated}: {percent:+.1} %."
    )
}

/// What must be known to believe it.
pub(super) fn said(bench: &Bench<'_>) -> Vec<String> {
    let s = bench.statistics();
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    let mut notes = vec![format!(
        "The emulation itself answered late by {:.2} ms (p50), {:.2} ms (p99), {:.0} ms (longest) \
         of the disk's time, in {} requests. A read of 1 MB takes it some 80 ms.",
        ms(s.late_p50),
        ms(s.late_p99),
        ms(s.late_max),
        s.reads + s.writes
    )];
    if let Some(why) = bench.not_in_real_time() {
        notes.push(format!(
            "Its timer was not run before other programs ({why}), so that what is late above \
             depends on what else the machine did."
        ));
    }
    notes
}

/// All of them, as they grow.
struct Tables {
    streams: Table,
    first_failing: Table,
    sequential: Table,
    failing: Vec<Outcome>,
}

impl Tables {
    fn new() -> Self {
        Self {
            streams: Table::new(
                "streams",
                "Most streams",
                &[
                    ("system", "system"),
                    ("method", "method"),
                    ("solaris", ">Solaris"),
                    ("freebsd", ">FreeBSD"),
                    ("simulated", ">simulated"),
                    ("emulated", ">emulated"),
                    ("by_the_mean", ">by the mean"),
                ],
            ),
            first_failing: Table::new(
                "first_failing",
                "Round times in s at the first number of streams that fails",
                &[
                    ("system", "system"),
                    ("method", "method"),
                    ("streams", ">streams"),
                    ("rounds", ">rounds"),
                    ("mean_s", ">mean"),
                    ("sd_s", ">sd"),
                    ("min_s", ">min"),
                    ("max_s", ">max"),
                ],
            ),
            sequential: Table::new(
                "sequential",
                "Seconds for 100 MB, read 1 MB after another, mean of 8 places all over the disk",
                &[
                    ("system", "system"),
                    ("solaris", ">Solaris"),
                    ("freebsd", ">FreeBSD"),
                    ("emulated", ">emulated"),
                ],
            ),
            failing: Vec::new(),
        }
    }

    fn streams(
        &mut self,
        (system, method): (&str, &str),
        (solaris, freebsd): (Option<u64>, Option<u64>),
        simulated: Option<u32>,
        found: &Capacity,
    ) {
        let failing = &found.failing;
        let spread = failing.round_times();
        self.streams.row([
            system.into(),
            method.into(),
            solaris.into(),
            freebsd.into(),
            simulated.map(u64::from).into(),
            u64::from(found.most).into(),
            by_the_mean(failing).into(),
        ]);
        let seconds = |time| Cell::Number(time, 2);
        let Spread { mean, sd, min, max } = spread;
        self.first_failing.row([
            system.into(),
            method.into(),
            (failing.streams.len() as u64).into(),
            (failing.rounds.len() as u64).into(),
            seconds(mean),
            seconds(sd),
            seconds(min),
            seconds(max),
        ]);
        self.failing.push(failing.clone());
    }

    fn sequential(&mut self, system: &str, [solaris, freebsd]: [Option<f64>; 2], ours: f64) {
        let cell = |time: Option<f64>| time.map_or(Cell::Missing, |time| Cell::Number(time, 1));
        self.sequential.row([system.into(), cell(solaris), cell(freebsd), Cell::Number(ours, 1)]);
    }
}

/// As many streams as the mean round of these would let in: a round grows with its streams.
fn by_the_mean(outcome: &Outcome) -> u64 {
    let part = outcome.deadline.as_secs_f64() / outcome.round_times().mean.max(f64::MIN_POSITIVE);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "few streams"
    )]
    let streams = (outcome.streams.len() as f64 * part) as u64;
    streams
}

fn drawn(failing: &[Outcome]) -> Figure {
    let spans = |ends: fn(Spread) -> (f64, f64)| {
        let places = (1..).map(f64::from).zip(failing);
        places
            .flat_map(|(x, outcome)| {
                let (low, high) = ends(outcome.round_times());
                [(x, low), (x, high)]
            })
            .collect()
    };
    let series = |name: &str, shape, points| Series { name: name.to_owned(), shape, points };
    let deadline = failing.first().map_or(0.0, |outcome| outcome.deadline.as_secs_f64());
    let plot = Plot {
        title: "Round times at the first number of streams that fails".to_owned(),
        x_label: "row of the table".to_owned(),
        y_label: "seconds".to_owned(),
        series: vec![
            series("least to most", Shape::Spans, spans(|s| (s.min, s.max))),
            series("mean ± sd", Shape::Spans, spans(|s| (s.mean - s.sd, s.mean + s.sd))),
            series("deadline", Shape::Limit, vec![(0.0, deadline)]),
        ],
    };
    let explanation = "One column for each row of the table of round times, in its order. Long \
                       columns are ways whose rounds differ: they fail while their mean is still \
                       below the deadline.";
    Figure { name: "first-failing", plot, explanation: explanation.to_owned() }
}

/// Where the searches begin.
const ABOUT: u32 = 58;
