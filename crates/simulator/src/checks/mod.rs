//! The rules that hold in every world, one kind of rule in each file.
//!
//! The checkers are written from outside the engine. Their input is what the driver of an engine
//! sees: requests, actions, the engine's status, the titles and the configuration. They share no
//! code with the engine, call nothing inside it and keep their own records, so that an error in the
//! engine does not repeat itself here.

mod deadlines;
mod deliveries;
mod liveness;
mod memory;
mod priorities;
mod recordings;
mod refusals;
mod schedule;
mod seeks;

pub(crate) use deadlines::{Admission, DeadlineCheck, Deadlines, DeliveredBytes, SeekTarget};
pub(crate) use deliveries::{Deliveries, Delivery};
pub(crate) use liveness::Liveness;
pub(crate) use memory::{IssuedRead, Memory, Piece};
pub(crate) use priorities::Priorities;
pub(crate) use recordings::{Keeping, RecordedBytes};
pub(crate) use refusals::{Refusals, Wish};
pub(crate) use schedule::Contract;
pub(crate) use seeks::{Contiguity, Segments};

use units::Moment;

/// A rule that was broken, with what was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The time of the violation.
    pub at: Moment,
    /// The rule, as a sentence that should be true.
    pub rule: &'static str,
    /// The values that contradict the rule.
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
    /// Records a violation; those after the first [`MAX_VIOLATIONS`] are dropped.
    pub(crate) fn add(&mut self, rule: &'static str, seen: impl FnOnce() -> String) {
        if self.list.len() < MAX_VIOLATIONS {
            self.list.push(Violation { at: self.now, rule, seen: seen() });
        }
    }

    /// Records a violation unless `holds`.
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

/// Later violations are usually consequences of the first ones.
const MAX_VIOLATIONS: usize = 20;
