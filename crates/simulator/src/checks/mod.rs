//! What must hold in every world, each in its own small file. They see only what the driver of an
//! engine sees: what is asked of it, what it answers, and its books. They never look inside.

mod deadlines;
mod deliveries;
mod liveness;
mod memory;
mod schedule;
mod seeks;

pub(crate) use deadlines::{DeadlineCheck, Deadlines, SeekTarget};
pub(crate) use deliveries::Deliveries;
pub(crate) use liveness::Liveness;
pub(crate) use memory::{Memory, Piece};
pub(crate) use schedule::Contract;
pub(crate) use seeks::{Contiguity, Segments};

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
pub(crate) struct ViolationLog {
    pub(crate) now: Moment,
    pub(crate) list: Vec<Violation>,
}

impl ViolationLog {
    /// Notes a violation; after [`MAX_VIOLATIONS`] there is nothing new to learn.
    pub(crate) fn add(&mut self, rule: &'static str, seen: impl FnOnce() -> String) {
        if self.list.len() < MAX_VIOLATIONS {
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

const MAX_VIOLATIONS: usize = 20;
