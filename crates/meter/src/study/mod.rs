//! Studies: the effect of one factor on a storage, all else being equal.
//!
//! ```text
//!   Study: name, the paper's claims ─▶ settings: one factor varied ─▶ runs of transfers
//!                                                                      │ every setting once, in a
//!   ClaimResult per claim ◀─ medians, ratios with intervals ◀──────────┘ random order; repeated
//! ```
//!
//! EBU TECH 3362 made these studies by hand. The factor of a study, the paper's findings and its
//! figures are a row of [`ALL`]; [`run()`] makes any of them through
//! [`transfers`](crate::transfers::run) on a [`StudyTarget`]: directories, in which files are made
//! and removed afterwards, a file or a device that is only read, or a simulated disk. [`answers`]
//! compares settings within each repetition, so that a storage that is slower today than yesterday
//! does not count as a difference.
//!
//! The effect of a network is studied by [`network`](crate::network).

mod answer;
mod run;
mod setting;
mod settings;
mod study_files;
mod study_target;

pub use answer::{ClaimResult, ClaimVerdict, Median, answers, median, ratio};
pub use run::{Done, MeasuredFigures, StudyPlan, StudyProgress, StudyRun, run};
pub use setting::{Cache, FileLayout, Scale, Setting};
pub use study_target::StudyTarget;

use serde::Deserialize;
use std::sync::LazyLock;

/// A study: a factor that is varied, and the claims about it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// The name that users type: `block-size`.
    pub name: String,
    /// A description in one line, for lists.
    pub about: String,
    /// What the study does, what it needs, and its limits.
    pub long: String,
    /// The factor with its unit, for the axis of plots.
    pub varies: String,
    /// Whether it uses two directories, one of which may be on another node.
    #[serde(default)]
    pub two_nodes: bool,
    /// Whether it compares places on the disk, so that the files have to be all of it.
    #[serde(default)]
    pub whole_disk: bool,
    /// The findings of the paper.
    pub claims: Vec<Claim>,
}

/// A statement of the paper: how a figure changes between two settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The statement in the paper's words, or nearly.
    pub says: String,
    /// The section and the figures of EBU TECH 3362.
    pub place: String,
    /// The figure that changes.
    pub figure: StudyFigure,
    /// The name of the first setting.
    pub from: String,
    /// The name of the second setting.
    pub to: String,
    /// Whether the figure at `to` is larger than at `from`, or smaller.
    pub more: bool,
}

/// All studies in the order of the paper.
pub static ALL: LazyLock<Vec<Study>> = LazyLock::new(|| {
    let table: StudyFile = toml::from_str(include_str!("studies.toml")).expect("a test reads it");
    table.study
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyFile {
    study: Vec<Study>,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StudyFigure {
    /// The rate of all clients together over the time of the run, in MB/s.
    Total,
    /// The rate of a client as in section 5.1: bytes over time in blocks, in MB/s.
    Rate,
    /// The mean latency as in section 5.1: the time of a transfer outside of its blocks, in ms.
    Latency,
    /// The 99th percentile of the time of a block, in ms.
    Block,
    /// The variation between seconds: the standard deviation of their bytes over the mean.
    Unevenness,
}

impl StudyFigure {
    /// All figures in the order of columns.
    pub const ALL: [Self; 5] =
        [Self::Total, Self::Rate, Self::Latency, Self::Block, Self::Unevenness];

    /// The name for programs, and the label with its unit for readers.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Total => ("total_mb_s", "all together, MB/s"),
            Self::Rate => ("client_mb_s", "rate of a client, MB/s"),
            Self::Latency => ("latency_ms", "mean latency, ms"),
            Self::Block => ("block_p99_ms", "99 % of blocks, ms"),
            Self::Unevenness => ("unevenness", "unevenness of seconds"),
        }
    }
}

impl Study {
    /// The study with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|study| study.name == name)
    }

    /// The settings, in the order of the axis.
    pub fn settings(&self, scale: &Scale) -> Vec<Setting> {
        let found = settings::ALL.iter().find(|(name, _)| *name == self.name);
        found.expect("a test looks for those of each study").1(scale)
    }
}

#[cfg(test)]
mod tests;
