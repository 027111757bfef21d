//! The number of late operations, from the records alone.
//!
//! This is the second count: it shares no code with the tally that judged during the run, knows
//! nothing of profiles or plans, and takes records in any order.

use super::{LogReader, NONE, OperationKind, Record};
use std::collections::BTreeMap;
use units::Reason;

/// The counts of a log's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recount {
    /// The number of records.
    pub records: u64,
    /// Records with a deadline.
    pub frames: u64,
    /// Frames that failed, never completed, or completed after their deadline.
    pub late: u64,
    /// Late frames that the meter's own delay explains.
    pub late_by_meter: u64,
    /// Records of operations that failed.
    pub failed: u64,
    /// Records of operations that never completed.
    pub never: u64,
    /// The bytes of completed operations, by kind.
    pub bytes: BTreeMap<OperationKind, u64>,
    /// The longest time from intended start to end, in nanoseconds.
    pub longest_response: u64,
    /// Late frames by the second of their deadline.
    pub late_by_second: BTreeMap<u64, u64>,
}

/// Counts the records of a log.
pub fn recount(log: LogReader) -> Result<Recount, Reason> {
    let mut found = Recount::default();
    for group in log {
        group?.iter().for_each(|record| found.count(record));
    }
    Ok(found)
}

impl Recount {
    /// Adds one record.
    pub fn count(&mut self, record: &Record) {
        self.records += 1;
        let came = record.end != NONE;
        let failed = record.errno != 0;
        self.failed += u64::from(failed);
        self.never += u64::from(!came);
        if came && !failed {
            *self.bytes.entry(record.kind).or_default() += u64::from(record.bytes);
            let response = record.end.saturating_sub(record.intended);
            self.longest_response = self.longest_response.max(response);
        }
        if record.deadline == NONE {
            return;
        }
        self.frames += 1;
        if record.is_late() {
            self.late += 1;
            let second = record.deadline / 1_000_000_000;
            *self.late_by_second.entry(second).or_default() += 1;
            self.late_by_meter += u64::from(record.is_late_by_meter());
        }
    }
}
