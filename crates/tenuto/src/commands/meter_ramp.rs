//! `meter ramp`: the same transfers with more and more clients.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::commands::meter_metrics::Metrics;
use crate::commands::meter_plots::{number, plot};
use crate::commands::meter_profiles;
use crate::commands::meter_record::{self, save_all};
use crate::commands::meter_streams::time;
use crate::commands::meter_target::{Spot, Target};
use crate::commands::meter_threshold::{Alarm, Watched};
use crate::commands::meter_transfers as transfers;
use crate::commands::meter_transfers_page::by_operation;
use crate::failure::Failure;
use crate::out::{self, Bar, Table};
use device::Method;
use meter::profiles::Profile;
use meter::ramp::{self, Files, Script, Step};
use meter::report::{Block, Page, Plot, Series, Shape};
use meter::transfers::{Length, Mix, Outcome, Plan, Progress, Row};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is asked.
struct Asked {
    script: Script,
    profile: Profile,
    spot: Spot,
    length: Option<Duration>,
    seed: u64,
    metrics: Metrics,
}

/// What a step gave.
struct Done {
    step: Step,
    outcome: Outcome,
    /// What `--threshold` saw.
    threshold: Value,
}

pub(crate) fn ramp(args: &Args<'_>) -> Result<(), Failure> {
    let name: String = args.get("SCRIPT");
    if args.has("toml") {
        let text = ramp::text(&name).ok_or_else(|| no_script(&name, "it does not come along"))?;
        out::print(text);
        return Ok(());
    }
    let script = script(&name)?;
    let asked = Asked {
        profile: meter_profiles::named(&script.profile)?,
        script,
        spot: Spot::new(args, Method::Best)?,
        length: args.maybe("step"),
        seed: args.count("seed"),
        metrics: Metrics::serve(args)?,
    };
    let steps = asked.script.steps(asked.length, asked.seed);
    let watched = |step: Step| {
        let alarm = Alarm::new(args, transfers::SECOND, step.clients)?;
        Ok((step, alarm.of(step.clients)))
    };
    let steps: Vec<(Step, Alarm)> = steps.map(watched).collect::<Result<_, Failure>>()?;
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let mix = asked.mix()?;
    let target = transfers::open(&asked.spot, &mix, &stop, &bar)?;
    let (mut done, mut trouble) = (Vec::new(), None);
    for (step, alarm) in steps {
        let outcome = attempt(&asked, &target, &mix, (step, &alarm), dir.as_deref(), &stop, &bar);
        let complete = match outcome {
            Ok(outcome) => {
                // A storage that is gone is not asked for hours.
                let gone = outcome.failed > 0 && outcome.sum(|_| true).blocks == 0;
                let complete = outcome.complete && !gone;
                done.push(Done { step, outcome, threshold: alarm.json() });
                complete
            }
            // Nothing was measured yet that could be kept.
            Err(failure) if done.is_empty() => return Err(failure),
            Err(failure) => {
                trouble = Some(failure);
                false
            }
        };
        if !complete {
            break;
        }
    }
    drop(bar);
    let mut summary = summary(&asked, &done);
    if trouble.is_some() {
        summary["complete"] = json!(false);
    }
    // What cannot be saved is told all the same.
    let saved: Result<(), Failure> = dir.as_ref().map_or(Ok(()), |dir| {
        save_all(dir, &summary["scenario"], &summary, &report(&asked, &done)?)?;
        out::note(&format!("wrote {}", dir.join("report.html").display()));
        Ok(())
    });
    if args.has("json") {
        out::print_json(&summary);
    } else {
        out::print(&text(&done));
    }
    saved?;
    if let Some(failure) = trouble {
        out::note("this is what there was until then");
        return Err(failure);
    }
    done.iter().try_for_each(|done| transfers::believable(&done.outcome))
}

/// One that comes along, or the user's file.
fn script(name: &str) -> Result<Script, Failure> {
    if let Some(text) = ramp::text(name) {
        return Ok(Script::read(text).expect("a test reads it"));
    }
    let text =
        std::fs::read_to_string(name).map_err(|error| no_script(name, &error.to_string()))?;
    Script::read(&text).map_err(|error| Failure::new(format!("{name}: {error}")))
}

fn no_script(name: &str, why: &str) -> Failure {
    let names: Vec<String> = ramp::builtin().into_iter().map(|script| script.name).collect();
    Failure::new(format!("there is no script '{name}': {why}"))
        .hint(format!("name a file, or one that comes along: {}", names.join(", ")))
}

impl Asked {
    fn mix(&self) -> Result<Mix, Failure> {
        let files = self.script.file_count();
        let mut mix = Mix::of(&self.profile, files, transfers::each(self.spot.size()?, files));
        mix.own_file = self.script.files == Files::Own;
        if self.script.whole_files {
            mix.length = Length::Whole;
            mix.replace = self.script.replace;
        }
        Ok(mix)
    }
}

fn attempt(
    asked: &Asked,
    target: &Target,
    mix: &Mix,
    (step, alarm): (Step, &Alarm),
    dir: Option<&Path>,
    stop: &AtomicBool,
    bar: &Bar,
) -> Result<Outcome, Failure> {
    let Step { clients, length: duration, seed } = step;
    let plan = Plan { mix: mix.clone(), clients, duration, most: None, seed };
    let plan = transfers::on(target, &plan)?;
    let log: Option<PathBuf> = dir.map(|dir| dir.join(format!("clients-{clients:03}")));
    if let Some(log) = &log {
        let failed = |error| Failure::new(format!("cannot make {}: {error}", log.display()));
        std::fs::create_dir(log).map_err(failed)?;
    }
    let (mut sink, behind) = meter_record::log(log.as_deref(), asked.spot.is_simulated())?;
    let live = asked.metrics.live();
    let mut watched = Watched { log: &mut sink, alarm };
    let show = &mut |progress: Progress| {
        alarm.look(progress.elapsed);
        bar.say(&format!("{clients} clients: {}, {}", time(progress.elapsed), progress.bytes));
        !stop.load(Ordering::Relaxed)
    };
    let outcome = transfers::attempt(target, &plan, &mut watched, live, show, stop);
    let written = behind.map(|behind| meter_record::end_log(behind, sink)).transpose()?;
    if let Some(sentence) = written.as_ref().and_then(meter_record::lacks) {
        out::note(&format!("{clients} clients: {sentence}"));
    }
    outcome
}

fn text(done: &[Done]) -> String {
    let mut table = Table::new(&[
        ">clients",
        "operation",
        ">transfers",
        ">rate of a client",
        ">mean latency",
        ">longest",
        ">rate of all",
    ]);
    for row in rows(done) {
        table.row(row);
    }
    table.show()
}

fn rows(done: &[Done]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for Done { step, outcome, .. } in done {
        let mut total = outcome.total_rate().to_string();
        for (name, row) in by_operation(outcome) {
            rows.push(vec![
                step.clients.to_string(),
                name,
                row.transfers.to_string(),
                row.rate().to_string(),
                time(row.mean_latency()),
                time(row.longest_latency),
                // Once a step.
                std::mem::take(&mut total),
            ]);
        }
    }
    rows
}

fn summary(asked: &Asked, done: &[Done]) -> Value {
    let Asked { script, profile, spot, seed, .. } = asked;
    let steps = done.iter().map(|Done { step, outcome, threshold }| {
        let mut said = transfers::figures(outcome);
        said["threshold"] = threshold.clone();
        said["clients"] = json!(step.clients);
        said
    });
    json!({
        "scenario": {
            "script": script,
            "profile": profile,
            "target": spot.target,
            "step": asked.length.unwrap_or(Duration::from_secs(script.step_s)).as_secs_f64(),
            "size": spot.size.0,
            "fill_level": spot.fill_level,
            "buffered": spot.buffered,
            "seed": seed,
        },
        "complete": done.iter().all(|done| done.outcome.complete),
        "steps": steps.collect::<Vec<_>>(),
    })
}

fn report(asked: &Asked, done: &[Done]) -> Result<Page, Failure> {
    let head = [
        "clients",
        "operation",
        "transfers",
        "rate of a client",
        "mean latency",
        "longest latency",
        "rate of all",
    ];
    let rate = plot_of(done, "Rate of a client, by number of clients", "MB/s", |row| {
        number(row.rate().0) / 8e6
    });
    let latency = plot_of(done, "Mean latency, by number of clients", "ms", |row| {
        row.mean_latency().as_secs_f64() * 1e3
    });
    let total =
        |done: &Done| (f64::from(done.step.clients), number(done.outcome.total_rate().0) / 8e6);
    let all = Plot {
        title: "Rate of all clients together".into(),
        x_label: "clients".into(),
        y_label: "MB/s".into(),
        series: vec![Series {
            name: "all".into(),
            shape: Shape::Line,
            points: done.iter().map(total).collect(),
        }],
    };
    Ok(Page {
        title: asked.script.title.clone(),
        summary: format!(
            "{} on {}. {}",
            asked.profile.title, asked.spot.target, asked.script.source
        ),
        blocks: vec![
            plot(
                &rate,
                "Bytes over the time in block transfers. Level: the storage has more to give. \
                         Falling as one over the number: clients share what there is.",
            )?,
            plot(
                &latency,
                "What a transfer takes beside its blocks. Rising steeply: the storage is at \
                            its end.",
            )?,
            plot(&all, "Where it no longer rises, more clients get no more out of it.")?,
            Block::Table { head: head.map(str::to_owned).into(), rows: rows(done) },
        ],
    })
}

fn plot_of(done: &[Done], title: &str, unit: &str, of: impl Fn(&Row) -> f64) -> Plot {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for Done { step, outcome, .. } in done {
        for (name, row) in by_operation(outcome) {
            lines.entry(name).or_default().push((f64::from(step.clients), of(&row)));
        }
    }
    let series =
        lines.into_iter().map(|(name, points)| Series { name, shape: Shape::Line, points });
    Plot {
        title: title.to_owned(),
        x_label: "clients".into(),
        y_label: unit.to_owned(),
        series: series.collect(),
    }
}
