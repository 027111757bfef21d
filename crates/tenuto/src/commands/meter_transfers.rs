//! `meter transfers`: as fast as it goes, by the definitions of EBU TECH 3362.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::commands::meter_metrics::Metrics;
use crate::commands::meter_port::{Traffic, came_back, leave};
use crate::commands::meter_record::{self, save_all, times};
use crate::commands::meter_target::{Spot, Target};
use crate::commands::meter_threshold::{Alarm, Watched};
use crate::commands::{meter_profiles, meter_transfers_page as page};
use crate::failure::{Code, Failure};
use crate::out::{self, Bar};
use device::Method;
use meter::live::{Live, Metered};
use meter::log::Keep;
use meter::profiles::Profile;
use meter::target::{Layout, Shape};
use meter::transfers::{self, Length, Mix, MixError, Outcome, Plan, Progress, Row, RowKey};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// What is asked.
pub(super) struct Asked {
    pub(super) profile: Profile,
    pub(super) spot: Spot,
    pub(super) plan: Plan,
    metrics: Metrics,
}

pub(crate) fn run(args: &Args<'_>) -> Result<(), Failure> {
    let asked = Asked::new(args)?;
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let target = open(&asked.spot, &asked.plan.mix, &stop, &bar)?;
    let plan = on(&target, &asked.plan)?;
    let (mut sink, behind) = meter_record::log(dir.as_deref(), asked.spot.is_simulated())?;
    let alarm = Alarm::new(args, SECOND, plan.clients)?;
    let mut log = Watched { log: &mut sink, alarm: &alarm };
    let show = &mut |progress: Progress| {
        alarm.look(progress.elapsed);
        bar.say(&format!("{} transfers, {}", progress.transfers, progress.bytes));
        !stop.load(Ordering::Relaxed)
    };
    let outcome = attempt(&target, &plan, &mut log, asked.metrics.live(), show, &stop);
    let written = behind.map(|behind| meter_record::end_log(behind, sink)).transpose();
    let outcome = outcome?;
    drop(bar);
    let mut summary = summary(&asked, &outcome);
    summary["threshold"] = alarm.json();
    meter_record::tell_of_log(&mut summary, &written);
    // What cannot be saved is told all the same.
    let saved: Result<(), Failure> = dir.as_ref().map_or(Ok(()), |dir| {
        save_all(dir, &summary["scenario"], &summary, &page::report(&asked, &outcome)?)?;
        out::note(&format!("wrote {}", dir.join("report.html").display()));
        Ok(())
    });
    if args.has("json") {
        out::print_json(&summary);
    } else {
        out::print(&page::text(&asked, &outcome));
    }
    let written = written?;
    saved?;
    believable(&outcome)?;
    meter_record::all_written(written)
}

/// What `--threshold` takes the mean of, unless told: transfers have no buffer that says.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Whether what a run says can be relied on.
pub(super) fn believable(outcome: &Outcome) -> Result<(), Failure> {
    came_back(outcome.stuck)?;
    if let Some(first) = &outcome.first_failure {
        let sentence = format!("{} transfers failed; the first: {first}", outcome.failed);
        return Err(Failure::new(sentence)
            .hint("the kernel's log says what the disk or the server complained of")
            .code(Code::Invalid));
    }
    if !outcome.complete {
        out::note("interrupted: this is what there was until then");
        return Err(Failure::reported(Code::Invalid));
    }
    Ok(())
}

impl Asked {
    fn new(args: &Args<'_>) -> Result<Self, Failure> {
        let Some(profile) = args.maybe::<String>("profile") else {
            return Err(Failure::usage("--profile is missing")
                .hint("ebu3362-edit, ebu3362-read and ebu3362-write are those of EBU TECH 3362"));
        };
        let profile = meter_profiles::named(&profile)?;
        let spot = Spot::new(args, Method::Best)?;
        let clients: u32 = args.count("clients");
        let own_file = args.has("own-files");
        let files = if own_file { clients } else { args.count("files") };
        let mut mix = Mix::of(&profile, files, each(spot.size()?, files));
        mix.own_file = own_file;
        mix.unrepeated = args.has("unrepeated");
        mix.delay = args.maybe("think").unwrap_or_default();
        let shaped = ["length", "block"].map(|name| args.maybe::<ByteCount>(name).is_some());
        if mix.drawn.is_some() && (shaped.contains(&true) || mix.unrepeated) {
            return Err(Failure::usage(format!("profile {} says all sizes itself", profile.name))
                .hint("leave out --length, --block and --unrepeated"));
        }
        if args.has("replace") {
            if mix.drawn.is_some() {
                return Err(Failure::usage(format!("profile {} writes parts", profile.name))
                    .hint("--replace is for profiles with frames or transfers"));
            }
            (mix.replace, mix.length) = (true, Length::Whole);
        }
        if let Some(length) = args.maybe::<ByteCount>("length") {
            mix.length = Length::UpTo(length.0);
        }
        if let Some(block) = args.maybe::<ByteCount>("block") {
            mix.blocks = vec![u32::try_from(block.0).unwrap_or(u32::MAX)];
        }
        if let Some(frames) = args.maybe::<u64>("frames") {
            if profile.fps.is_none() {
                return Err(Failure::usage(format!("profile {} has no frames", profile.name))
                    .hint("`tenuto meter profiles` lists those that have"));
            }
            let frames = u32::try_from(frames).unwrap_or(u32::MAX);
            mix.length = Length::Frames(profile.bytes, frames);
        }
        let plan = Plan {
            mix,
            clients,
            duration: args.get("duration"),
            most: args.maybe("transfers"),
            seed: args.count("seed"),
        };
        Ok(Self { profile, spot, plan, metrics: Metrics::serve(args)? })
    }
}

/// Of so many files that take this together.
pub(super) fn each(size: ByteCount, files: u32) -> ByteCount {
    Shape::of(Layout::FilePerStream, size, files, 1).each
}

/// Makes and fills the files that a mix goes to, if they are not there.
pub(super) fn open(
    spot: &Spot,
    mix: &Mix,
    stop: &AtomicBool,
    bar: &Bar,
) -> Result<Target, Failure> {
    let mut shape = Shape { layout: Layout::FilePerStream, files: mix.files, each: mix.each };
    if mix.replace && !Path::new(&spot.target).is_dir() {
        return Err(Failure::usage("a file is replaced only where files are made")
            .hint("name a directory as --target"));
    }
    if spot.is_one() && mix.files == 1 {
        shape.layout = Layout::SharedFile;
    } else if spot.is_one() || Path::new(&spot.target).is_dir() {
        // Before anything is written.
        mix.check(mix.files)?;
    }
    spot.open(shape, mix.writes(), stop, bar)
}

/// The plan for what is there.
pub(super) fn on(target: &Target, plan: &Plan) -> Result<Plan, Failure> {
    let mut plan = plan.clone();
    plan.mix.each = target.shape().each;
    plan.mix.check(plan.clients)?;
    Ok(plan)
}

/// One run.
pub(super) fn attempt(
    target: &Target,
    plan: &Plan,
    log: &mut dyn Keep,
    live: Option<&Live>,
    go_on: &mut dyn FnMut(Progress) -> bool,
    stop: &AtomicBool,
) -> Result<Outcome, Failure> {
    let mut port = target.port(&Traffic {
        at_once: plan.clients,
        largest: ByteCount(plan.mix.largest_block().into()),
        writes: plan.mix.writes(),
        opens: true,
        replaces: plan.mix.replace,
    })?;
    live.into_iter().for_each(|live| live.begin(plan.clients));
    let outcome = transfers::run(plan, &mut *port, &mut Metered { log, live }, go_on);
    let stuck = leave(port, stop);
    Ok(Outcome { stuck, ..outcome? })
}

/// What `--json` prints.
fn summary(asked: &Asked, outcome: &Outcome) -> Value {
    let mut all = figures(outcome);
    all["scenario"] = scenario(asked);
    let clients = outcome.clients.iter().map(|client| {
        json!({
            "transfers": client.transfers,
            "bytes": client.bytes.0,
            "bits_per_s": BitRate::of(client.bytes, client.data).0,
            "latency": client.latency.as_secs_f64(),
            "longest_latency": client.longest_latency.as_secs_f64(),
        })
    });
    all["each_client"] = clients.collect();
    let seconds = outcome.seconds.iter().map(|second| {
        json!({
            "bytes_read": second.read.0,
            "bytes_written": second.written.0,
            "blocks": second.blocks,
            "longest": second.longest.as_secs_f64(),
        })
    });
    all["seconds"] = seconds.collect();
    all
}

/// What is said of every run, of a ramp's steps as well.
pub(super) fn figures(outcome: &Outcome) -> Value {
    let rows = outcome.rows.iter().map(|(key, row)| {
        let mut said = of_row(row);
        said["kind"] = json!(key.kind.word());
        said["random"] = json!(key.random);
        said["block"] = json!(key.block);
        said
    });
    json!({
        "complete": outcome.complete,
        "method": outcome.method,
        "took": outcome.took.as_secs_f64(),
        "failed": outcome.failed,
        "unfinished": outcome.unfinished,
        "stuck": outcome.stuck,
        "total_bits_per_s": outcome.total_rate().0,
        "all": of_row(&outcome.sum(|_| true)),
        "rows": rows.collect::<Vec<_>>(),
    })
}

fn of_row(row: &Row) -> Value {
    json!({
        "transfers": row.transfers,
        "blocks": row.blocks,
        "bytes": row.bytes.0,
        "bits_per_s": row.rate().0,
        "mean_bits_per_s": row.mean_rate().0,
        "mean_latency": row.mean_latency().as_secs_f64(),
        "longest_latency": row.longest_latency.as_secs_f64(),
        "meter": row.meter.as_secs_f64(),
        "open_and_close": row.open.as_secs_f64(),
        "mean_fill": row.mean_fill().as_secs_f64(),
        "block_service": times(&row.service),
    })
}

fn scenario(asked: &Asked) -> Value {
    let Plan { mix, clients, duration, most, seed } = &asked.plan;
    json!({
        "profile": asked.profile,
        "target": asked.spot.target,
        "clients": clients,
        "duration": duration.as_secs_f64(),
        "transfers": most,
        "seed": seed,
        "size": asked.spot.size.0,
        "files": mix.files,
        "own_files": mix.own_file,
        "write_percent": mix.write_percent,
        "random_percent": mix.random_percent,
        "longest": mix.length.most(),
        "blocks": mix.blocks,
        "think": mix.delay.as_secs_f64(),
        "unrepeated": mix.unrepeated,
        "replace": mix.replace,
        "fill_level": asked.spot.fill_level,
        "buffered": asked.spot.buffered,
        "destructive": asked.spot.destructive,
    })
}

/// What a row is about, in words.
pub(super) fn words(key: &RowKey) -> String {
    format!("{} {}", if key.random { "random" } else { "sequential" }, key.kind.word())
}

impl From<MixError> for Failure {
    fn from(error: MixError) -> Self {
        Self::of(&error.to_string()).code(Code::Usage)
    }
}
