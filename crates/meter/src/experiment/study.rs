//! A study: the effect of one factor on a storage, all else being equal (`meter study`).

use super::record::{self, ExperimentReport};
use super::study_page;
use super::target::{disk_model, note_left_behind};
use crate::error::MeterError;
use crate::observer::Observer;
use crate::study::{
    self, ClaimResult, Done, Median, Study, StudyFigure, StudyPlan, StudyTarget, answers, median,
};
use crate::target::Filling;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use units::ByteCount;

/// A study of a storage.
#[derive(Clone)]
pub struct StudyConfig {
    /// The factor that is varied, and the claims about it.
    pub study: &'static Study,
    /// A directory, a file, a device, or `sim:MODEL`.
    pub target: String,
    /// A directory on the second node of a study of two nodes.
    pub second: Option<PathBuf>,
    /// Sizes, lengths and repetitions.
    pub plan: StudyPlan,
    /// New directory for the report and all figures.
    pub out: Option<PathBuf>,
}

/// Makes all runs of a study and compares its settings with the published claims.
pub fn run_study(
    config: &StudyConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let target = open_target(config, observer)?;
    record::prepare(config.out.as_deref())?;
    let left = observer.left_behind();
    let mut done = study::run(config.study, &target, &config.plan, &left, &mut |progress| {
        let filling = progress.filling;
        let note = filling.and_then(|filling| filling.note(&config.target));
        note.iter().for_each(|note| observer.note(note));
        let doing = match filling {
            Some(Filling::Bytes(bytes)) => format!("files, {}", ByteCount(bytes)),
            Some(_) => "files".to_owned(),
            None => "running".to_owned(),
        };
        // People count from one.
        let (next, all) = (progress.runs + 1, progress.all);
        observer.status(&format!("run {next} of {all}: {}: {doing}", progress.setting));
        !observer.is_stopped()
    })?;
    let answers = answers(config.study, &done);
    let summary = summary(config, &done, &answers);
    let page = || study_page::page(config, &done, &answers);
    let saved = record::save(config.out.as_deref(), &summary, page, observer);
    let text = study_page::text(config, &done, &answers);
    let verdict = saved.and_then(|()| match done.trouble.take() {
        Some(error) => Err(error),
        None if done.complete => Ok(()),
        None => Err(MeterError::interrupted("interrupted: these are the runs until then")),
    });
    Ok(ExperimentReport { summary, text, verdict })
}

/// Opens the directories, file, device or simulated disk of the study.
fn open_target(config: &StudyConfig, observer: &dyn Observer) -> Result<StudyTarget, MeterError> {
    let StudyConfig { target, second, .. } = config;
    let Some(model) = disk_model(target)? else {
        let target = PathBuf::from(target);
        let device = |path: &PathBuf| path.metadata().ok().map(|about| about.dev());
        // A note only: the runs are possible, but say nothing about two nodes.
        if second.as_ref().is_some_and(|second| device(second) == device(&target)) {
            observer.note("both directories are on one file system: this is one node twice");
        }
        let dirs: Vec<PathBuf> = std::iter::once(target).chain(second.clone()).collect();
        dirs.iter().for_each(|dir| note_left_behind(dir, observer));
        return StudyTarget::at(dirs);
    };
    if second.is_some() {
        return Err(MeterError::usage("--second is for a directory")
            .hint("two simulated disks are there without it"));
    }
    Ok(StudyTarget::Simulated(Box::new(model)))
}

/// The median of a figure over all runs of a setting.
pub(super) fn figure_of(done: &Done, setting: usize, figure: StudyFigure) -> Option<Median> {
    let runs = done.runs.iter().filter(|run| run.setting == setting);
    median(runs.filter_map(|run| run.figure(figure)).collect())
}

fn summary(config: &StudyConfig, done: &Done, answers: &[ClaimResult]) -> Value {
    let StudyConfig { study, target, second, plan, .. } = config;
    let settings = done.settings.iter().enumerate().map(|(number, setting)| {
        let mut object = json!({ "name": setting.name, "line": setting.line, "x": setting.x });
        for figure in StudyFigure::ALL {
            object[figure.names().0] = json!(figure_of(done, number, figure));
        }
        object
    });
    // The single runs stand beside the means of the settings, so that a reader can judge the
    // spread.
    let runs = done.runs.iter().map(|run| {
        let mut object = json!({
            "setting": done.settings[run.setting].name,
            "repeat": run.repeat,
            "transfers": run.measured.transfers,
            "method": run.measured.method,
            "fragments": run.measured.fragments,
        });
        for figure in StudyFigure::ALL {
            object[figure.names().0] = json!(run.figure(figure));
        }
        object
    });
    let answers = answers.iter().map(|answer| {
        json!({
            "says": answer.claim.says,
            "place": answer.claim.place,
            "figure": answer.claim.figure.names().0,
            "from": answer.claim.from,
            "to": answer.claim.to,
            "more": answer.claim.more,
            "ratio": answer.ratio,
            "verdict": answer.verdict.word(),
        })
    });
    json!({
        "scenario": {
            "study": study.name,
            "target": target,
            "second": second,
            "size": done.scale.size.0,
            "clients": done.scale.clients,
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
