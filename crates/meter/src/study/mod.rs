//! Studies: what one thing does to a storage, other things being equal.
//!
//! ```text
//!   Study: name, what the paper says ─▶ settings: one thing varied ─▶ runs of transfers
//!                                                                      │ every setting once, in an
//!   Answer to each claim ◀─ medians, ratios with intervals ◀───────────┘ order of its own; repeated
//! ```
//!
//! EBU TECH 3362 made these by hand. What a study varies, what the paper found, and in which of its
//! figures, is a row of [`ALL`]; [`run()`] does any of them through
//! [`transfers`](crate::transfers::run) on a [`StudyTarget`]: directories, in which files are made
//! and gone afterwards, a file or a device that is only read, or a simulated disk. [`answers`]
//! compares settings within each repetition, so that a storage that is slower today than yesterday
//! is not taken for a difference.
//!
//! A network between is studied by [`network`](crate::network).

mod answer;
mod run;
mod setting;
mod settings;
mod study_files;
mod study_target;
mod table;

pub use answer::{ClaimResult, ClaimVerdict, Median, answers, median, ratio};
pub use run::{Done, MeasuredFigures, StudyError, StudyPlan, StudyProgress, StudyRun, run};
pub use setting::{Cache, FileLayout, Scale, Setting};
pub use study_target::StudyTarget;
pub use table::ALL;

/// What can be studied.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// As typed: `block-size`.
    pub name: &'static str,
    /// One line for lists.
    pub about: &'static str,
    /// What the study does, what it needs, and its limits.
    pub long: &'static str,
    /// What is varied, with its unit: below plots.
    pub varies: &'static str,
    /// Whether it is made in two places, of which one may be on another node.
    pub two_nodes: bool,
    /// What the paper found.
    pub claims: &'static [Claim],
    /// What is tried, one after another along the axis.
    pub settings: fn(&Scale) -> Vec<Setting>,
}

/// The paper's statement on two settings.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// In its words, or nearly.
    pub says: &'static str,
    /// Where: section and figures of EBU TECH 3362.
    pub place: &'static str,
    /// The figure that the finding is about.
    pub figure: StudyFigure,
    /// A setting's name.
    pub from: &'static str,
    /// Another's.
    pub to: &'static str,
    /// Whether the figure is larger there than at `from`, or smaller.
    pub more: bool,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudyFigure {
    /// What all clients moved, over the time of the run, in MB/s.
    Total,
    /// The rate of a client as section 5.1 has it: bytes over time in blocks, in MB/s.
    Rate,
    /// The mean latency as section 5.1 has it: time of a transfer that is in no block, in ms.
    Latency,
    /// What 99 % of blocks took at most, in ms.
    Block,
    /// How uneven seconds were: the standard deviation of what they moved over its mean.
    Unevenness,
}

impl StudyFigure {
    /// All, in the order of columns.
    pub const ALL: [Self; 5] =
        [Self::Total, Self::Rate, Self::Latency, Self::Block, Self::Unevenness];

    /// A word for programs, and with its unit for people.
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
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|study| study.name == name)
    }
}

#[cfg(test)]
mod tests;
