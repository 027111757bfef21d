//! What must hold in every world, each in its own small file. They see only what the driver of an
//! engine sees: what is asked of it, what it answers, and its books. They never look inside.

mod deadlines;
mod deliveries;
mod liveness;
mod memory;
mod promises;

pub(crate) use deadlines::{Appointment, Deadlines, Place};
pub(crate) use deliveries::Deliveries;
pub(crate) use liveness::Liveness;
pub(crate) use memory::{Memory, Piece};

use units::Moment;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Moment,
    /// Which rule.
    pub rule: &'static str,
    /// What was seen.
    pub seen: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.9} s: {}: {}", self.at.as_secs_f64(), self.rule, self.seen)
    }
}

/// The violations of a run.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) now: Moment,
    pub(crate) list: Vec<Violation>,
}

impl Findings {
    /// Notes a violation; after [`MOST_FINDINGS`] there is nothing new to learn.
    pub(crate) fn add(&mut self, rule: &'static str, seen: impl FnOnce() -> String) {
        if self.list.len() < MOST_FINDINGS {
            self.list.push(Violation { at: self.now, rule, seen: seen() });
        }
    }

    /// Notes one unless `holds`.
    pub(crate) fn require(
        &mut self,
        holds: bool,
        rule: &'static str,
        seen: impl FnOnce() -> String,
    ) {
        if !holds {
            self.add(rule, seen);
        }
    }
}

const MOST_FINDINGS: usize = 20;
