//! Events in the order of their times.
//!
//! ```text
//!   this second:    a list in order, and a heap of what is added while it passes     pop, push
//!   later seconds:  one list each, in any order                                      push
//!   after the end:  dropped
//! ```
//!
//! A heap of all events would have one entry for each viewer, and each step in it would miss the
//! cache. Here the events of a second are sorted when it begins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use units::Moment;

/// Events of type `E` in the order of their times; those of one time in the order of `E`.
#[derive(Debug)]
pub(super) struct Calendar<E> {
    /// Events of this second, the last one first.
    sorted: Vec<(Moment, E)>,
    /// Events that were added to this second after it had begun.
    added: BinaryHeap<Reverse<(Moment, E)>>,
    /// Number of this second.
    second: usize,
    seconds: Vec<Vec<(Moment, E)>>,
}

impl<E: Ord + Copy> Calendar<E> {
    /// Without events; those from `end` on will be dropped.
    pub(super) fn until(end: Duration) -> Self {
        let seconds = usize::try_from(end.as_secs()).expect("a time in seconds is small");
        Self {
            sorted: Vec::new(),
            added: BinaryHeap::new(),
            second: 0,
            seconds: std::iter::repeat_with(Vec::new).take(seconds).collect(),
        }
    }

    /// Adds an event that is not earlier than the last that was taken.
    pub(super) fn push(&mut self, at: Moment, event: E) {
        let second = usize::try_from(at.0 / 1_000_000_000).unwrap_or(usize::MAX);
        if second >= self.seconds.len() {
            return;
        }
        if second <= self.second {
            self.added.push(Reverse((at, event)));
        } else {
            self.seconds[second].push((at, event));
        }
    }

    /// Takes the next event. `ahead` gets the events of a second when it begins.
    pub(super) fn pop(&mut self, mut ahead: impl FnMut(&[(Moment, E)])) -> Option<(Moment, E)> {
        loop {
            let added = self.added.peek().map(|Reverse(event)| *event);
            match (self.sorted.last(), added) {
                (Some(next), Some(added)) if *next <= added => return self.sorted.pop(),
                (_, Some(added)) => {
                    self.added.pop();
                    return Some(added);
                }
                (Some(_), None) => return self.sorted.pop(),
                (None, None) => {}
            }
            self.second += 1;
            self.sorted = std::mem::take(self.seconds.get_mut(self.second)?);
            self.sorted.sort_unstable_by(|a, b| b.cmp(a));
            ahead(&self.sorted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_their_times() {
        let mut calendar = Calendar::until(Duration::from_secs(5));
        let mut random = fastrand::Rng::with_seed(1);
        let mut expected = Vec::new();
        for number in 0..500u32 {
            let at = Moment(random.u64(..6_000_000_000));
            calendar.push(at, number);
            expected.push((at, number));
        }
        expected.retain(|(at, _)| *at < Moment::from_secs(5));
        expected.sort_unstable();
        let mut got = Vec::new();
        while let Some((at, number)) = calendar.pop(|_| {}) {
            got.push((at, number));
            if number % 50 == 0 {
                let soon = at + Duration::from_millis(1);
                calendar.push(soon, number + 1_001);
                if soon < Moment::from_secs(5) {
                    expected.push((soon, number + 1_001));
                }
            }
        }
        expected.sort_unstable();
        assert_eq!(got, expected);
    }
}
