//! `meter rounds`: what a disk, a file or a file system holds.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar, Table, facts};
use device::{BlockDevice, FileDevice, Method, OpenOptions, SimulatedDisk, describe};
use disk::DiskModel;
use meter::rounds::{Order, Outcome, Pace, Plan, Spread, run_together};
use meter::target::{Port, QueuedPort, SimulatedPort};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, show_duration};

type Job = (Plan, Box<dyn Port + Send>);

pub(crate) fn rounds(args: &Args<'_>) -> Result<(), Failure> {
    let targets: Vec<String> = args.all("TARGET");
    let stop = on_interrupt()?;
    // All are looked at before the first is read.
    let together = jobs(args, &targets)?;
    let bar = Bar::new();
    let longest = together[0].0.round() * together[0].0.rounds;
    let longest = show_duration(longest);
    let mut alone = Vec::new();
    if args.has("alone") {
        for target in &targets {
            bar.say(&format!("reading {target} for {longest} if it keeps up"));
            let one = jobs(args, std::slice::from_ref(target))?;
            alone.extend(run_together(one, &stop)?);
        }
    }
    bar.say(&format!("reading for {longest} if the disk keeps up"));
    // Opened anew: time counts from there.
    let together = if alone.is_empty() { together } else { jobs(args, &targets)? };
    let parts = run_together(together, &stop)?;
    drop(bar);
    let outcome = Outcome::joined(&parts);
    let asked: usize = args.count("rounds");
    let complete = outcome.rounds.len() == asked;
    let each = Each { targets: &targets, together: &parts, alone: &alone };
    if args.has("json") {
        let mut object = object(args, &targets, &outcome, complete);
        object["each"] = each.json();
        out::print_json(&object);
    } else {
        out::print(&(page(args, &targets, &outcome) + &each.table()));
    }
    if !complete {
        out::note("interrupted: these are the rounds until then");
        return Err(Failure::reported(Code::Invalid));
    }
    if outcome.failed() > 0 {
        return Err(Failure::new("some blocks could not be read")
            .hint("the kernel's log says what the disk complained of")
            .code(Code::Invalid));
    }
    Ok(())
}

fn jobs(args: &Args<'_>, targets: &[String]) -> Result<Vec<Job>, Failure> {
    let origin = Instant::now();
    let job = |target: &String| match target.strip_prefix(SIMULATED) {
        Some(model) => simulated(args, model),
        None => real(args, Path::new(target), origin),
    };
    targets.iter().map(job).collect()
}

/// What stands before a model's name.
const SIMULATED: &str = "sim:";

fn simulated(args: &Args<'_>, name: &str) -> Result<Job, Failure> {
    let model = DiskModel::preset(name).ok_or_else(|| {
        Failure::usage(format!("there is no disk model '{name}'"))
            .hint("`tenuto disk models` lists them")
    })?;
    if args.text("method") != "best" || args.has("buffered") {
        return Err(Failure::usage(format!("{SIMULATED}{name} is not read through a kernel"))
            .hint("leave out --method and --buffered"));
    }
    let plan = plan(args, name, model.capacity())?;
    Ok((plan, Box::new(SimulatedPort::new(SimulatedDisk::new(&model)))))
}

fn real(args: &Args<'_>, path: &Path, origin: Instant) -> Result<Job, Failure> {
    if describe(path)?.is_sparse() {
        let sentence = format!("parts of {} have no place on disk", path.display());
        return Err(Failure::new(sentence)
            .hint("reading them says nothing of the disk: fill the file first"));
    }
    let direct = !args.has("buffered");
    let device = FileDevice::open(path, OpenOptions { direct, write: false, exclusive: false })?;
    if direct && !device.is_direct() {
        out::note(&format!(
            "{} is read through the page cache: its file system cannot do without",
            path.display()
        ));
    }
    let plan = plan(args, &path.display().to_string(), device.geometry().size)?;
    let named = args.text("method");
    let method: Method = named.parse().unwrap_or_else(|_| panic!("the table offers {named}"));
    let pool = QueuedPort::pool(plan.at_once, plan.block);
    let queue = device.queue_by(method, plan.at_once, &pool)?;
    let port = QueuedPort::new(&device, queue, pool, origin);
    Ok((plan, Box::new(port)))
}

fn plan(args: &Args<'_>, name: &str, size: ByteCount) -> Result<Plan, Failure> {
    let (block, rate): (ByteCount, BitRate) = (args.get("block"), args.get("rate"));
    if block.0 == 0 || block > LARGEST_BLOCK {
        return Err(Failure::usage(format!("--block: {block} is no block to read"))
            .hint(format!("something from 1 KiB to {LARGEST_BLOCK} is")));
    }
    if rate.0 == 0 {
        return Err(Failure::usage("--rate: a stream plays something")
            .hint("for reads as fast as they go there is --free"));
    }
    let streams: u32 = args.count("streams");
    let wanted = ByteCount(block.0.saturating_mul(streams.into()));
    if size < wanted {
        return Err(Failure::new(format!("{name} is too small: {size}"))
            .hint(format!("{streams} streams with a block each need at least {wanted}")));
    }
    let order = match args.text("order").as_str() {
        "scan" => Order::Scan,
        _ => Order::Arrival(SEED),
    };
    Ok(Plan {
        rounds: args.count("rounds"),
        order,
        at_once: args.count::<u32>("at-once").min(streams),
        pace: if args.has("free") { Pace::Free } else { Pace::Rounds },
        ..Plan::spread(streams, size, block, rate)
    })
}

/// Of random orders: two runs differ by the disk only.
const SEED: u64 = 1;

/// Memory for one read.
const LARGEST_BLOCK: ByteCount = ByteCount::mib(256);

fn page(args: &Args<'_>, targets: &[String], outcome: &Outcome) -> String {
    let (block, rate): (ByteCount, BitRate) = (args.get("block"), args.get("rate"));
    let Spread { mean, sd, min, max } = outcome.round_times();
    let disks = match targets.len() {
        1 => String::new(),
        count => format!(" on {count} targets at once"),
    };
    let late = outcome.late_rounds();
    let held = if outcome.holds() { "held" } else { "not held" };
    let mut lines = vec![
        ("streams", format!("{} of {rate}{disks}, blocks of {block}", outcome.streams.len())),
        ("read by", format!("{}, {} at once", outcome.method, args.count::<u32>("at-once"))),
        (
            "rounds",
            format!("{} of {}, {late} late: {held}", outcome.rounds.len(), time(outcome.deadline)),
        ),
        ("took", format!("mean {mean:.3} s, sd {sd:.3}, least {min:.3}, most {max:.3}")),
        ("longest gap", time(outcome.longest_gap())),
        ("read", format!("{} at {}", bytes(outcome, block), rate_of(outcome, block))),
        ("memory", format!("{} of a server that does this", outcome.memory)),
    ];
    if outcome.failed() > 0 {
        lines.push(("failed", format!("{} blocks", outcome.failed())));
    }
    facts(&lines)
}

fn object(args: &Args<'_>, targets: &[String], outcome: &Outcome, complete: bool) -> Value {
    let (block, rate): (ByteCount, BitRate) = (args.get("block"), args.get("rate"));
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
        "order": args.text("order"),
        "at_once": args.count::<u32>("at-once"),
        "method": outcome.method,
        "deadline": outcome.deadline.as_secs_f64(),
        "holds": outcome.holds(),
        "holds_in_the_mean": outcome.holds_in_the_mean(),
        "late_rounds": outcome.late_rounds(),
        "failed_blocks": outcome.failed(),
        "round_time": spread(outcome.round_times()),
        "stream_time": spread(outcome.stream_times()),
        "longest_gap": outcome.longest_gap().as_secs_f64(),
        "bytes": bytes(outcome, block).0,
        "bits_per_s": rate_of(outcome, block).0,
        "memory": outcome.memory.0,
        "rounds": list.collect::<Vec<_>>(),
    })
}

/// What each of several targets did, all together and, if that was asked for, by itself.
struct Each<'a> {
    targets: &'a [String],
    together: &'a [Outcome],
    alone: &'a [Outcome],
}

impl Each<'_> {
    /// Nothing of a single target that was read once.
    fn table(&self) -> String {
        let when: &[(&'static str, &[Outcome])] = match (self.targets.len(), self.alone.len()) {
            (1, 0) => return String::new(),
            (_, 0) => &[("together", self.together)],
            _ => &[("alone", self.alone), ("together", self.together)],
        };
        let columns = ["target", "read", ">late", ">mean s", ">sd", ">least", ">most"];
        let mut table = Table::new(&columns);
        for (number, target) in self.targets.iter().enumerate() {
            for (how, outcomes) in when {
                // None: interrupted before.
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
        let one = |outcome: &Outcome| {
            json!({
                "late_rounds": outcome.late_rounds(),
                "round_time": spread(outcome.round_times()),
                "stream_time": spread(outcome.stream_times()),
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

pub(super) fn spread(Spread { mean, sd, min, max }: Spread) -> Value {
    json!({ "mean": mean, "sd": sd, "min": min, "max": max })
}

fn bytes(outcome: &Outcome, block: ByteCount) -> ByteCount {
    let blocks: u64 = outcome.streams.iter().map(|stream| u64::from(stream.blocks)).sum();
    ByteCount(blocks * block.0)
}

/// Over the time that was spent reading.
fn rate_of(outcome: &Outcome, block: ByteCount) -> BitRate {
    let busy: Duration = outcome.rounds.iter().map(|round| round.took).sum();
    BitRate::of(bytes(outcome, block), busy)
}

fn time(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
