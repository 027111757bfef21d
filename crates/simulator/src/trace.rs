//! The trace of a run, line by line: a hash for comparing two runs, and the last lines for people
//! to read.

use std::collections::VecDeque;
use std::fmt;
use units::Moment;

/// One event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// Time of the event.
    pub at: Moment,
    /// Kind of the event, and the meaning of `numbers`.
    pub what: &'static str,
    /// Ids and amounts, in the order that `what` names.
    pub numbers: [u64; 4],
}

impl fmt::Display for TraceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.numbers;
        write!(f, "{:>14.9} {:<28} {a} {b} {c} {d}", self.at.as_secs_f64(), self.what)
    }
}

/// Hash of all lines so far, and the last lines.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    last: VecDeque<TraceLine>,
    keep: usize,
}

impl Trace {
    /// Keeps the last `keep` lines.
    pub(crate) fn new(keep: usize) -> Self {
        Self { hash: FNV_OFFSET, last: VecDeque::new(), keep }
    }

    /// Hashes a line. If `kept`, also stores it. The world stores no lines after a rule was broken,
    /// so that the stored lines show what led to the violation.
    pub(crate) fn note(&mut self, line: TraceLine, kept: bool) {
        for byte in line.what.bytes() {
            self.mix(u64::from(byte));
        }
        self.mix(line.at.0);
        line.numbers.into_iter().for_each(|number| self.mix(number));
        if kept {
            if self.last.len() == self.keep {
                self.last.pop_front();
            }
            self.last.push_back(line);
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn into_last(self) -> Vec<TraceLine> {
        self.last.into()
    }

    // FNV-1a over words instead of bytes: equal on every machine, and no defence against chosen
    // input.
    fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(FNV_PRIME).rotate_left(23);
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
