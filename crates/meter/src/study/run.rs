//! A study at work: every setting once, in an order of its own, again and again.
//!
//! ```text
//!   repetition 0:  C A B      one seed: the same transfers are drawn for all of a repetition
//!   repetition 1:  B C A      another
//! ```
//!
//! What drifts - a cache that fills, a neighbour that begins to work - meets every setting alike.

use super::study_files::StudyFiles;
use super::{FileLayout, Scale, Setting, Study, StudyFigure, StudyTarget};
use crate::log::LogSink;
use crate::target::{TargetError, close_port};
use crate::transfers::{self, MixError, TransfersOutcome};
use device::DeviceError;
use std::time::Duration;

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct StudyPlan {
    /// How large it is.
    pub scale: Scale,
    /// The length of each run: no transfer begins later.
    pub length: Duration,
    /// Runs of each setting.
    pub repeats: u32,
    /// The seed of the draws and of the order.
    pub seed: u64,
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
pub struct StudyProgress<'a> {
    /// Runs that are over.
    pub runs: u32,
    /// The total number of runs.
    pub all: u32,
    /// What is tried.
    pub setting: &'a str,
    /// Bytes of files written before it can begin; `None` while it runs.
    pub making: Option<u64>,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct StudyRun {
    /// Which of the settings.
    pub setting: usize,
    /// Which time.
    pub repeat: u32,
    /// What it gave.
    pub measured: MeasuredFigures,
}

/// The figures of a run; figures that it cannot give are missing.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFigures {
    /// As [`StudyFigure::ALL`] has them.
    pub figures: [Option<f64>; StudyFigure::ALL.len()],
    /// Transfers that it moved.
    pub transfers: u64,
    /// How.
    pub method: String,
    /// The number of extents of the files, where the file system reports it.
    pub fragments: Option<u64>,
}

/// What came of a study.
#[derive(Debug)]
pub struct Done {
    /// What was tried.
    pub settings: Vec<Setting>,
    /// In the order in which they were made.
    pub runs: Vec<StudyRun>,
    /// False where it was stopped.
    pub complete: bool,
    /// Why it ended before its time, with the runs until then.
    pub trouble: Option<StudyError>,
}

/// There can be no such study.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// Not there, or not in that way; what to do is in it.
    #[error("{0}")]
    Unfit(String),
    /// What is made cannot be made.
    #[error(transparent)]
    Place(#[from] TargetError),
    /// What is used does not answer.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Files are too small, or too few.
    #[error(transparent)]
    Mix(#[from] MixError),
    /// A run with a failure has no figures.
    #[error("{setting}: {failed} transfers failed; the first: {first}")]
    Failed {
        /// What was tried.
        setting: String,
        /// How many.
        failed: u64,
        /// In words.
        first: String,
    },
    /// It hangs.
    #[error("{setting}: the storage hangs: {stuck} operations did not come back")]
    Hangs {
        /// What was tried.
        setting: String,
        /// How many.
        stuck: u32,
    },
}

impl StudyRun {
    /// One of its figures.
    pub fn figure(&self, figure: StudyFigure) -> Option<f64> {
        self.measured.figures[figure as usize]
    }
}

/// Makes a study. `go_on` is asked often; if it says no, the study ends with the runs until then,
/// as it does where something fails after the first run.
pub fn run(
    study: &Study,
    ground: &StudyTarget,
    plan: &StudyPlan,
    go_on: &mut dyn FnMut(StudyProgress<'_>) -> bool,
) -> Result<Done, StudyError> {
    let StudyPlan { mut scale, length, repeats, seed } = *plan;
    scale.size = ground.size(scale.size);
    let mut settings = (study.settings)(&scale);
    ground.fits(&settings)?;
    for setting in &settings {
        setting.mix.check(scale.clients)?;
    }
    let still = settings.iter().map(Setting::bytes).max().unwrap_or_default();
    let used = ground.used_percent(still)?;
    settings.retain(|setting| match setting.lie {
        FileLayout::FilledTo(percent) => percent == 0 || u64::from(percent) > used,
        FileLayout::InOneGo | FileLayout::InPieces(_) => true,
    });
    let mut files = StudyFiles::new(ground, scale.clients);
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
                |making| go_on(StudyProgress { runs: over, all, setting: &setting.name, making });
            let plan = transfers::TransfersPlan {
                mix: setting.mix.clone(),
                clients: scale.clients,
                duration: length,
                most: setting.most,
                seed: seed.wrapping_add(repeat.into()),
            };
            let trouble = match one(&mut files, setting, &plan, &mut say) {
                Ok(Some(measured)) => {
                    runs.push(StudyRun { setting: number, repeat, measured });
                    continue;
                }
                Ok(None) => None,
                // Nothing was measured yet that could be kept.
                Err(trouble) if runs.is_empty() => return Err(trouble),
                Err(trouble) => Some(trouble),
            };
            return Ok(Done { settings, runs, complete: false, trouble });
        }
    }
    Ok(Done { settings, runs, complete: true, trouble: None })
}

/// One run; `None` where it was stopped. `go_on` is told how many bytes of files are made.
fn one(
    files: &mut StudyFiles<'_>,
    setting: &Setting,
    plan: &transfers::TransfersPlan,
    go_on: &mut dyn FnMut(Option<u64>) -> bool,
) -> Result<Option<MeasuredFigures>, StudyError> {
    let made = files.port(setting, &mut |bytes| go_on(Some(bytes)));
    let mut port = match made {
        Err(StudyError::Place(TargetError::Interrupted)) => return Ok(None),
        made => made?,
    };
    let outcome = transfers::run(plan, &mut *port, &mut LogSink::none(), &mut |_| go_on(None));
    let stuck = close_port(port, &|| PATIENCE);
    let outcome = outcome?;
    let name = || setting.name.clone();
    if let Some(first) = outcome.first_failure {
        return Err(StudyError::Failed { setting: name(), failed: outcome.failed, first });
    }
    if stuck > 0 {
        return Err(StudyError::Hangs { setting: name(), stuck });
    }
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

/// Seconds that a standard deviation is made of.
const FEWEST: usize = 4;
