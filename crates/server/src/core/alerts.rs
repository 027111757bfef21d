//! When late reads that were guaranteed are told: at once, and then as a sum from time to time.

use serde_json::{Value, json};
use std::time::Duration;
use units::Moment;

/// What was told of guarantee violations.
#[derive(Debug, Default)]
pub(super) struct Alerts {
    /// Violations by the disk and by the scheduler.
    told: (u64, u64),
    at: Option<Moment>,
}

impl Alerts {
    /// What there is to tell of violations, of which there have been so many, by the disk and by
    /// the scheduler; `None`: nothing, or not yet.
    pub(super) fn violations(&mut self, now: Moment, all: (u64, u64)) -> Option<Value> {
        let is_early = self.at.is_some_and(|at| now.since(at) < INTERVAL);
        if all == self.told || is_early {
            return None;
        }
        let new = json!({ "disk": all.0 - self.told.0, "scheduler": all.1 - self.told.1 });
        (self.told, self.at) = (all, Some(now));
        Some(new)
    }
}

/// The time between two sums: a disk in trouble is late hundreds of times in a minute.
const INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_violation_is_told_at_once_and_others_once_a_minute() {
        let mut alerts = Alerts::default();
        for (second, all, wanted) in [
            (1, (0, 0), None),
            (2, (1, 0), Some(json!({ "disk": 1, "scheduler": 0 }))),
            (3, (5, 1), None),
            (61, (5, 1), None),
            (62, (6, 1), Some(json!({ "disk": 5, "scheduler": 1 }))),
            (500, (6, 1), None),
            (501, (6, 2), Some(json!({ "disk": 0, "scheduler": 1 }))),
        ] {
            let now = Moment::ZERO + Duration::from_secs(second);
            assert_eq!(alerts.violations(now, all), wanted, "second {second}");
        }
    }
}
