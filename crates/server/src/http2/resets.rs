//! How often a client may end its own requests before they are answered.
//!
//! Each such request has cost the server its beginning, and the client two small frames. Players
//! end some while their viewer seeks.

use std::time::{Duration, Instant};

/// What is left of the resets that a carrier may have.
#[derive(Debug)]
pub(super) struct ResetBudget {
    left: u32,
    /// When the last ones were added.
    since: Instant,
}

impl ResetBudget {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: AT_ONCE, since: now }
    }

    /// Counts one. Returns whether it was one too many.
    pub(super) fn spend(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since);
        let more = passed.as_nanos() / EVERY.as_nanos();
        if more > 0 {
            let more = u32::try_from(more).unwrap_or(AT_ONCE);
            self.left = self.left.saturating_add(more).min(AT_ONCE);
            self.since = now;
        }
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }
}

/// Resets that may come at once: twice the streams of a carrier.
const AT_ONCE: u32 = 2 * super::MOST_LANES;
/// Time after which one more may come: a viewer drags the position of a film for a while.
const EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_come_at_once_or_over_time_and_not_both() {
        let start = Instant::now();
        let mut budget = ResetBudget::new(start);
        assert!((0..AT_ONCE).all(|_| !budget.spend(start)));
        assert!(budget.spend(start));
        let mut budget = ResetBudget::new(start);
        assert!((0..10 * AT_ONCE).all(|number| !budget.spend(start + EVERY * number)));
        // Those that were not used are not saved.
        let later = start + EVERY * 100 * AT_ONCE;
        assert_eq!((0..2 * AT_ONCE).filter(|_| budget.spend(later)).count(), AT_ONCE as usize);
    }
}
