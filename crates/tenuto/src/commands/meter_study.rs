//! `meter study NAME`: what one thing does to a storage, other things being equal.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::commands::meter_record::{self, save_all};
use crate::commands::meter_study_page as page;
use crate::commands::meter_target::SIMULATED;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar};
use disk::DiskModel;
use meter::study::{
    Answer, Done, Figure, Ground, Median, Plan, Scale, Study, StudyError, answers, median,
};
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use units::ByteCount;

/// What is asked.
pub(super) struct Asked {
    pub(super) study: &'static Study,
    pub(super) target: String,
    second: Option<PathBuf>,
    pub(super) plan: Plan,
}

pub(crate) fn run(name: &str, args: &Args<'_>) -> Result<(), Failure> {
    let asked = Asked::new(name, args)?;
    let ground = asked.ground()?;
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let mut done = meter::study::run(asked.study, &ground, &asked.plan, &mut |progress| {
        let doing = match progress.making {
            Some(bytes) => format!("files, {}", ByteCount(bytes)),
            None => "running".to_owned(),
        };
        let (next, all) = (progress.runs + 1, progress.all);
        bar.say(&format!("run {next} of {all}: {}: {doing}", progress.setting));
        !stop.load(Ordering::Relaxed)
    })?;
    drop(bar);
    let answers = answers(asked.study, &done);
    let summary = summary(&asked, &done, &answers);
    if let Some(dir) = &dir {
        let page = page::report(&asked, &done, &answers)?;
        save_all(dir, &summary["scenario"], &summary, &page)?;
        out::note(&format!("wrote {}", dir.join("report.html").display()));
    }
    if args.has("json") {
        out::print_json(&summary);
    } else {
        out::print(&page::text(&asked, &done, &answers));
    }
    if let Some(trouble) = done.trouble.take() {
        return Err(trouble.into());
    }
    if !done.complete {
        out::note("interrupted: these are the runs until then");
        return Err(Failure::reported(Code::Invalid));
    }
    Ok(())
}

impl Asked {
    fn new(name: &str, args: &Args<'_>) -> Result<Self, Failure> {
        let study = Study::named(name).expect("the table offers what there is");
        let Some(target) = args.maybe::<String>("target") else {
            return Err(Failure::usage("--target is missing")
                .hint("a directory, a file, a block device, or sim:MODEL"));
        };
        let second = study.two_nodes.then(|| args.maybe("second"));
        let scale = Scale { size: args.get("size"), clients: args.count("clients") };
        let plan = Plan {
            scale,
            length: args.get("duration"),
            repeats: args.count("repeats"),
            seed: args.count("seed"),
        };
        Ok(Self { study, target, second: second.flatten(), plan })
    }

    fn ground(&self) -> Result<Ground, Failure> {
        let Some(name) = self.target.strip_prefix(SIMULATED) else {
            let target = PathBuf::from(&self.target);
            let on = |path: &PathBuf| path.metadata().ok().map(|about| about.dev());
            if self.second.as_ref().is_some_and(|second| on(second) == on(&target)) {
                out::note("both directories are on one file system: this is one node twice");
            }
            let paths = std::iter::once(target).chain(self.second.clone());
            return Ok(Ground::at(paths.collect())?);
        };
        if self.second.is_some() {
            return Err(Failure::usage("--second is for a directory")
                .hint("two simulated disks are there without it"));
        }
        let model = DiskModel::preset(name).ok_or_else(|| {
            Failure::usage(format!("there is no disk model '{name}'"))
                .hint("`tenuto disk models` lists them")
        })?;
        Ok(Ground::Simulated(Box::new(model)))
    }
}

/// The values of a figure in all runs of a setting, as one.
pub(super) fn of(done: &Done, setting: usize, figure: Figure) -> Option<Median> {
    let runs = done.runs.iter().filter(|run| run.setting == setting);
    median(runs.filter_map(|run| run.figure(figure)).collect())
}

fn summary(asked: &Asked, done: &Done, answers: &[Answer]) -> Value {
    let Asked { study, target, second, plan } = asked;
    let settings = done.settings.iter().enumerate().map(|(number, setting)| {
        let mut said = json!({ "name": setting.name, "line": setting.line, "x": setting.x });
        for figure in Figure::ALL {
            said[figure.names().0] = interval(of(done, number, figure));
        }
        said
    });
    let runs = done.runs.iter().map(|run| {
        let mut said = json!({
            "setting": done.settings[run.setting].name,
            "repeat": run.repeat,
            "transfers": run.measured.transfers,
            "method": run.measured.method,
            "fragments": run.measured.fragments,
        });
        for figure in Figure::ALL {
            said[figure.names().0] = json!(run.figure(figure));
        }
        said
    });
    let answers = answers.iter().map(|answer| {
        json!({
            "says": answer.claim.says,
            "place": answer.claim.place,
            "figure": answer.claim.figure.names().0,
            "from": answer.claim.from,
            "to": answer.claim.to,
            "more": answer.claim.more,
            "ratio": interval(answer.ratio),
            "verdict": answer.verdict.word(),
        })
    });
    json!({
        "scenario": {
            "study": study.name,
            "target": target,
            "second": second,
            "size": plan.scale.size.0,
            "clients": plan.scale.clients,
            "duration": plan.length.as_secs_f64(),
            "repeats": plan.repeats,
            "seed": plan.seed,
        },
        "complete": done.complete,
        "answers": answers.collect::<Vec<_>>(),
        "settings": settings.collect::<Vec<_>>(),
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn interval(of: Option<Median>) -> Value {
    of.map_or(
        Value::Null,
        |of| json!({ "median": of.median, "low": of.low, "high": of.high, "sure": of.sure }),
    )
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Place(error) => error.into(),
            StudyError::Device(error) => error.into(),
            StudyError::Mix(error) => error.into(),
            StudyError::Unfit(sentence) => Self::of(&sentence).code(Code::Usage),
            StudyError::Hangs { .. } => Self::new(error.to_string())
                .hint("is its server there? Files that the meter made may be left on it")
                .code(Code::Invalid),
            failed @ StudyError::Failed { .. } => Self::new(failed.to_string())
                .hint("the kernel's log says what the disk or the server complained of")
                .code(Code::Invalid),
        }
    }
}
