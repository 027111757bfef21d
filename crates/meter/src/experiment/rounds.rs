//! Rounds of reads on disks, files or simulated disks, as media servers read (`meter rounds`).

use super::record::ExperimentReport;
use super::target::disk_model;
use crate::error::MeterError;
use crate::observer::Observer;
use crate::report::{TextTable, facts};
use crate::rounds::{Order, RoundPace, RoundsOutcome, RoundsPlan, Spread, run_together};
use crate::target::{Port, QueuedPort, SimulatedPort};
use device::{BlockDevice, FileDevice, Method, OpenOptions, SimulatedDisk, describe};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use units::show::count;
use units::{BitRate, ByteCount, show_duration};

/// The settings of rounds of reads on one or more targets in parallel.
#[derive(Clone)]
pub struct RoundsConfig {
    /// Files, block devices, or `sim:MODEL`.
    pub targets: Vec<String>,
    /// Number of streams of each target.
    pub streams: u32,
    /// Bytes that a stream reads in a round.
    pub block: ByteCount,
    /// Rate at which a stream plays.
    pub rate: BitRate,
    /// Number of rounds.
    pub rounds: u32,
    /// Order of the reads within a round.
    pub order: Order,
    /// The queue depth: reads in flight.
    pub at_once: u32,
    /// The kernel interface for reading.
    pub method: Method,
    /// Read through the page cache.
    pub buffered: bool,
    /// Begin each round directly after the one before.
    pub unpaced: bool,
    /// Read each target alone first.
    pub alone: bool,
}

impl RoundsConfig {
    /// The orders by name. Random orders are the same in every run, so that two runs differ by the
    /// disk only.
    pub const ORDERS: [(&str, Order); 2] = [("scan", Order::Scan), ("arrival", Order::Arrival(1))];
}

fn order_word(order: Order) -> &'static str {
    match order {
        Order::Scan => "scan",
        Order::Arrival(_) => "arrival",
        Order::Streams => "streams",
    }
}

type TargetRounds = (RoundsPlan, Box<dyn Port + Send>);

/// Reads in rounds and reports which rounds were late.
pub fn run_rounds(
    config: &RoundsConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let targets = &config.targets;
    // All targets are checked before the first is read.
    let checked = jobs(config, targets, observer)?;
    // All targets have the same block and rate, and so the same rounds.
    let longest = show_duration(checked[0].0.round() * checked[0].0.rounds);
    let mut alone = Vec::new();
    if config.alone {
        for target in targets {
            observer.status(&format!("reading {target} for {longest} if it keeps up"));
            // New jobs, because a job's clock and its queue serve one run only.
            let one = jobs(config, std::slice::from_ref(target), observer)?;
            alone.extend(run_together(one, observer.stop())?);
        }
    }
    observer.status(&format!("reading for {longest} if the disk keeps up"));
    // The clock of a job starts when it is made.
    let together = if alone.is_empty() { checked } else { jobs(config, targets, observer)? };
    let parts = run_together(together, observer.stop())?;
    // A server with several disks is late when any of them is.
    let outcome = RoundsOutcome::joined(&parts);
    let complete = outcome.rounds.len() == usize::try_from(config.rounds).unwrap_or(usize::MAX);
    let each = Each { targets, together: &parts, alone: &alone };
    let mut summary = summary(config, &outcome, complete);
    summary["each"] = each.json();
    let text = text(config, &outcome) + &each.table();
    let verdict = if !complete {
        Err(MeterError::interrupted("interrupted: these are the rounds until then"))
    } else if outcome.failed() > 0 {
        Err(MeterError::new("some blocks could not be read")
            .hint("the kernel's log says what the disk complained of")
            .invalid())
    } else if outcome.holds() {
        Ok(())
    } else {
        Err(MeterError::not_held(format!(
            "not held: {} late",
            count(outcome.late_rounds(), "round")
        )))
    };
    Ok(ExperimentReport { summary, text, verdict })
}

fn jobs(
    config: &RoundsConfig,
    targets: &[String],
    observer: &dyn Observer,
) -> Result<Vec<TargetRounds>, MeterError> {
    let origin = Instant::now();
    let job = |target: &String| match disk_model(target)? {
        Some(model) => {
            if config.method != Method::Best || config.buffered {
                return Err(MeterError::usage(format!("{target} is not read through a kernel"))
                    .hint("leave out --method and --buffered"));
            }
            let plan = plan(config, model.name(), model.capacity())?;
            let port: Box<dyn Port + Send> =
                Box::new(SimulatedPort::new(SimulatedDisk::new(&model)));
            Ok((plan, port))
        }
        None => local_job(config, Path::new(target), origin, observer),
    };
    targets.iter().map(job).collect()
}

fn local_job(
    config: &RoundsConfig,
    path: &Path,
    origin: Instant,
    observer: &dyn Observer,
) -> Result<TargetRounds, MeterError> {
    // Holes are answered by the file system without the disk.
    if describe(path)?.is_sparse() {
        let message = format!("parts of {} have no place on disk", path.display());
        return Err(MeterError::new(message)
            .hint("reading them says nothing of the disk: fill the file first"));
    }
    let direct = !config.buffered;
    let device = FileDevice::open(path, OpenOptions { direct, ..OpenOptions::default() })?;
    if direct && !device.is_direct() {
        observer.note(&format!(
            "{} is read through the page cache: its file system cannot do without",
            path.display()
        ));
    }
    let plan = plan(config, &path.display().to_string(), device.geometry().size)?;
    let pool = QueuedPort::pool(plan.at_once, plan.block);
    let queue = device.queue_by(config.method, plan.at_once, &pool)?;
    let port = QueuedPort::new(&device, queue, pool, origin);
    Ok((plan, Box::new(port)))
}

fn plan(config: &RoundsConfig, name: &str, size: ByteCount) -> Result<RoundsPlan, MeterError> {
    let RoundsConfig { streams, block, rate, rounds, order, at_once, unpaced, .. } = *config;
    if block.0 == 0 || block > LARGEST_BLOCK {
        return Err(MeterError::usage(format!("--block: {block} is no block to read"))
            .hint(format!("something from 1 KiB to {LARGEST_BLOCK} is")));
    }
    if rate.0 == 0 {
        return Err(MeterError::usage("--rate: a stream plays something")
            .hint("for reads as fast as they go there is --unpaced"));
    }
    let wanted = ByteCount(block.0.saturating_mul(streams.into()));
    if size < wanted {
        return Err(MeterError::new(format!("{name} is too small: {size}"))
            .hint(format!("{} with a block each: at least {wanted}", count(streams, "stream"))));
    }
    Ok(RoundsPlan {
        rounds,
        order,
        // A round has one read for each stream, so a deeper queue would only reserve memory.
        at_once: at_once.min(streams),
        pace: if unpaced { RoundPace::Free } else { RoundPace::Rounds },
        ..RoundsPlan::spread(streams, size, block, rate)
    })
}

/// The largest read.
const LARGEST_BLOCK: ByteCount = ByteCount::mib(256);

fn text(config: &RoundsConfig, outcome: &RoundsOutcome) -> String {
    let RoundsConfig { targets, block, rate, at_once, .. } = config;
    let block = *block;
    let Spread { mean, sd, min, max } = outcome.round_times();
    let disks = match targets.len() {
        1 => String::new(),
        count => format!(" on {count} targets at once"),
    };
    let late = outcome.late_rounds();
    let held = if outcome.holds() { "held" } else { "not held" };
    let mut lines = vec![
        ("streams", format!("{} of {rate}{disks}, blocks of {block}", outcome.streams.len())),
        ("read by", format!("{}, {} at once", outcome.method, at_once)),
        (
            "rounds",
            format!(
                "{} of {}, {late} late: {held}",
                outcome.rounds.len(),
                seconds(outcome.deadline)
            ),
        ),
        ("took", format!("mean {mean:.3} s, sd {sd:.3}, least {min:.3}, most {max:.3}")),
        ("longest gap", seconds(outcome.longest_gap())),
        ("read", format!("{} at {}", bytes(outcome, block), rate_of(outcome, block))),
        ("memory", format!("{} of a server that does this", outcome.memory)),
    ];
    if outcome.failed() > 0 {
        lines.push(("failed", count(outcome.failed(), "block")));
    }
    facts(&lines)
}

fn summary(config: &RoundsConfig, outcome: &RoundsOutcome, complete: bool) -> Value {
    let RoundsConfig { targets, block, rate, order, at_once, .. } = config;
    let block = *block;
    let list = outcome.rounds.iter().map(|round| {
        json!({
            "began": round.began.as_secs_f64(),
            "took": round.took.as_secs_f64(),
            "late": round.late,
            "failed": round.failed,
        })
    });
    json!({
        "targets": targets,
        "complete": complete,
        "streams": outcome.streams.len(),
        "block": block.0,
        "bit_rate": rate.0,
        "order": order_word(*order),
        "iodepth": at_once,
        "method": outcome.method,
        "deadline": outcome.deadline.as_secs_f64(),
        // By each round, and by the mean alone as the paper of the method counts.
        "holds": outcome.holds(),
        "holds_in_the_mean": outcome.holds_in_the_mean(),
        "late_rounds": outcome.late_rounds(),
        "failed_blocks": outcome.failed(),
        "round_time": outcome.round_times(),
        "stream_time": outcome.stream_times(),
        "longest_gap": outcome.longest_gap().as_secs_f64(),
        "bytes": bytes(outcome, block).0,
        "bits_per_s": rate_of(outcome, block).0,
        "memory": outcome.memory.0,
        "rounds": list.collect::<Vec<_>>(),
    })
}

/// The rounds of each of several targets, read together and, if configured, alone.
struct Each<'a> {
    targets: &'a [String],
    together: &'a [RoundsOutcome],
    alone: &'a [RoundsOutcome],
}

impl Each<'_> {
    /// The table of all targets; empty for a single target that was read once.
    fn table(&self) -> String {
        let when: &[(&'static str, &[RoundsOutcome])] = match (self.targets.len(), self.alone.len())
        {
            (1, 0) => return String::new(),
            (_, 0) => &[("together", self.together)],
            _ => &[("alone", self.alone), ("together", self.together)],
        };
        let columns = ["target", "read", ">late", ">mean s", ">sd", ">least", ">most"];
        let mut table = TextTable::new(&columns);
        for (number, target) in self.targets.iter().enumerate() {
            for (how, outcomes) in when {
                // Interrupted before this target was read alone.
                let Some(outcome) = outcomes.get(number) else { continue };
                let Spread { mean, sd, min, max } = outcome.round_times();
                let seconds = [mean, sd, min, max].map(|time| format!("{time:.3}"));
                let late = outcome.late_rounds().to_string();
                let mut row = vec![target.clone(), (*how).to_owned(), late];
                row.extend(seconds);
                table.row(row);
            }
        }
        format!("\nrounds of each\n{}", table.show())
    }

    fn json(&self) -> Value {
        let one = |outcome: &RoundsOutcome| {
            json!({
                "late_rounds": outcome.late_rounds(),
                "round_time": outcome.round_times(),
                "stream_time": outcome.stream_times(),
            })
        };
        let each = self.targets.iter().enumerate().map(|(number, target)| {
            json!({
                "target": target,
                "together": self.together.get(number).map(one),
                "alone": self.alone.get(number).map(one),
            })
        });
        each.collect()
    }
}

fn bytes(outcome: &RoundsOutcome, block: ByteCount) -> ByteCount {
    let blocks: u64 = outcome.streams.iter().map(|stream| u64::from(stream.blocks)).sum();
    ByteCount(blocks * block.0)
}

/// The bytes divided by the time spent reading.
fn rate_of(outcome: &RoundsOutcome, block: ByteCount) -> BitRate {
    let busy: Duration = outcome.rounds.iter().map(|round| round.took).sum();
    BitRate::of(bytes(outcome, block), busy)
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
