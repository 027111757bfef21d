//! The runs of a study: every setting once in each repetition, in a random order.
//!
//! ```text
//!   repetition 0:  C A B      one seed: all settings of a repetition draw the same transfers
//!   repetition 1:  B C A      another seed
//! ```
//!
//! So a drift, such as a cache that fills or a neighbour that begins to work, affects all settings
//! alike.

use super::study_files::StudyFiles;
use super::{FileLayout, Scale, Setting, Study, StudyFigure, StudyTarget};
use crate::error::MeterError;
use crate::log::LogSink;
use crate::target::{Filling, LeftBehind, close_port};
use crate::transfers::{self, TransfersOutcome};
use std::time::Duration;
use units::ByteCount;

/// The extent of a study.
#[derive(Clone, Copy, Debug)]
pub struct StudyPlan {
    /// The size of all files of a setting together; `None`: the usual one, see
    /// [`StudyTarget::size`].
    pub size: Option<ByteCount>,
    /// The number of concurrent clients.
    pub clients: u32,
    /// The length of each run, after which no transfer begins.
    pub length: Duration,
    /// The number of runs of each setting.
    pub repeats: u32,
    /// The seed of the draws and of the order.
    pub seed: u64,
}

/// The progress of a study.
#[derive(Clone, Copy, Debug)]
pub struct StudyProgress<'a> {
    /// The number of completed runs.
    pub runs: u32,
    /// The total number of runs.
    pub all: u32,
    /// The name of the current setting.
    pub setting: &'a str,
    /// The files that are made before the run can begin; `None` while it runs.
    pub filling: Option<Filling>,
}

/// The result of one run.
#[derive(Clone, Debug)]
pub struct StudyRun {
    /// The index of the setting.
    pub setting: usize,
    /// The number of the repetition.
    pub repeat: u32,
    /// The figures of the run.
    pub measured: MeasuredFigures,
}

/// The figures of a run; figures that it cannot give are missing.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFigures {
    /// The figures in the order of [`StudyFigure::ALL`].
    pub figures: [Option<f64>; StudyFigure::ALL.len()],
    /// The number of transfers.
    pub transfers: u64,
    /// The read method.
    pub method: String,
    /// The number of extents of the files, where the file system reports it.
    pub fragments: Option<u64>,
}

/// The outcome of a study.
#[derive(Debug)]
pub struct Done {
    /// The size of the files and the number of clients.
    pub scale: Scale,
    /// The settings of the study.
    pub settings: Vec<Setting>,
    /// The runs in the order in which they were made.
    pub runs: Vec<StudyRun>,
    /// Whether all runs were made; false where it was stopped.
    pub complete: bool,
    /// The error that ended it early; the runs until then are kept.
    pub trouble: Option<MeterError>,
}

impl StudyRun {
    /// The value of one figure.
    pub fn figure(&self, figure: StudyFigure) -> Option<f64> {
        self.measured.figures[figure as usize]
    }
}

/// Makes a study. `left` receives the files that cannot be removed at the end. `go_on` is called
/// often; if it returns false, the study ends with the runs until then, as it does if something
/// fails after the first run.
pub fn run(
    study: &Study,
    target: &StudyTarget,
    plan: &StudyPlan,
    left: &LeftBehind,
    go_on: &mut dyn FnMut(StudyProgress<'_>) -> bool,
) -> Result<Done, MeterError> {
    let StudyPlan { size, clients, length, repeats, seed } = *plan;
    let scale = Scale { size: target.size(study, size), clients };
    let mut settings = study.settings(&scale);
    // Before any file is made.
    target.fits(&settings)?;
    for setting in &settings {
        setting.mix.check(scale.clients)?;
    }
    // The files of the largest setting fill the disk too, so a level that they pass is left out.
    let still = settings.iter().map(Setting::bytes).max().unwrap_or_default();
    let used = target.used_percent(still)?;
    settings.retain(|setting| match setting.layout {
        FileLayout::FilledTo(percent) => percent == 0 || u64::from(percent) > used,
        FileLayout::InOneGo | FileLayout::InPieces(_) => true,
    });
    let mut files = StudyFiles::new(target, clients, left);
    let mut order = fastrand::Rng::with_seed(seed);
    let all = repeats * u32::try_from(settings.len()).expect("a few settings");
    let mut runs = Vec::new();
    for repeat in 0..repeats {
        let mut turns: Vec<usize> = (0..settings.len()).collect();
        order.shuffle(&mut turns);
        for number in turns {
            let setting = &settings[number];
            let over = u32::try_from(runs.len()).expect("fewer than all");
            let mut say =
                |filling| go_on(StudyProgress { runs: over, all, setting: &setting.name, filling });
            let plan = transfers::TransfersPlan {
                mix: setting.mix.clone(),
                clients: scale.clients,
                duration: length,
                most: setting.most,
                seed: seed.wrapping_add(repeat.into()),
                rate: None,
            };
            let trouble = match one(&mut files, setting, &plan, &mut say) {
                Ok(Some(measured)) => {
                    runs.push(StudyRun { setting: number, repeat, measured });
                    continue;
                }
                Ok(None) => None,
                // There are no results yet that could be kept.
                Err(trouble) if runs.is_empty() => return Err(trouble),
                Err(trouble) => Some(trouble),
            };
            return Ok(Done { scale, settings, runs, complete: false, trouble });
        }
    }
    Ok(Done { scale, settings, runs, complete: true, trouble: None })
}

/// Makes one run; `None` where it was stopped. `go_on` receives the state of files that are made.
fn one(
    files: &mut StudyFiles<'_>,
    setting: &Setting,
    plan: &transfers::TransfersPlan,
    go_on: &mut dyn FnMut(Option<Filling>) -> bool,
) -> Result<Option<MeasuredFigures>, MeterError> {
    let mut stopped = false;
    let made = files.port(setting, &mut |filling| {
        stopped = !go_on(Some(filling));
        !stopped
    });
    if stopped {
        return Ok(None);
    }
    let mut port = made?;
    let outcome = transfers::run(plan, &mut *port, &mut LogSink::none(), &mut |_| go_on(None));
    let stuck = close_port(port, &|| PATIENCE);
    let outcome = TransfersOutcome { stuck, ..outcome? };
    outcome.check_done().map_err(|error| error.about(&setting.name))?;
    let fragments = files.fragments(setting);
    Ok(outcome.complete.then(|| MeasuredFigures { fragments, ..measured(&outcome) }))
}

/// The time allowed for operations in flight at the end of a run.
const PATIENCE: Duration = Duration::from_secs(30);

fn measured(outcome: &TransfersOutcome) -> MeasuredFigures {
    let all = outcome.sum(|_| true);
    let some = |figure: f64| (all.transfers > 0 && figure.is_finite()).then_some(figure);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let figure = |figure: StudyFigure| match figure {
        StudyFigure::Total => some(all.bytes.0 as f64 / outcome.took.as_secs_f64() / 1e6),
        StudyFigure::Rate => some(all.bytes.0 as f64 / all.data.as_secs_f64() / 1e6),
        StudyFigure::Latency => some(millis(all.mean_latency())),
        StudyFigure::Block => some(millis(all.service.quantile(0.99))),
        StudyFigure::Unevenness => unevenness(outcome),
    };
    MeasuredFigures {
        figures: StudyFigure::ALL.map(figure),
        transfers: all.transfers,
        method: outcome.method.clone(),
        fragments: None,
    }
}

/// The unevenness of complete seconds; the last second is incomplete.
fn unevenness(outcome: &TransfersOutcome) -> Option<f64> {
    let whole = outcome.seconds.split_last().map_or(&[][..], |(_, whole)| whole);
    if whole.len() < FEWEST {
        return None;
    }
    let moved = || whole.iter().map(|second| (second.read.0 + second.written.0) as f64);
    let count = whole.len() as f64;
    let mean = moved().sum::<f64>() / count;
    let variance = moved().map(|bytes| (bytes - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean > 0.0).then_some(variance.sqrt() / mean)
}

/// The smallest number of seconds for a standard deviation.
const FEWEST: usize = 4;
