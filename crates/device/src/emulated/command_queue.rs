//! The requests that wait for a modelled disk, the one that it serves next, and the time at which
//! that one is complete.
//!
//! Arrival times are arguments, and each service time follows from the one before: a late call
//! changes no decision. The queue holds no bytes and wakes no thread.
//!
//! ```text
//!   arrive ──▶ waiting, oldest first ──next──▶ (payload of the request, its service) ──▶ the head
//! moves
//!              └─ the first `depth` of them: the nearest ─┘
//! ```
//!
//! A disk with an arm serves one request at a time. A disk without one starts each on arrival. No
//! request overtakes a flush.

use crate::Access;
use disk::{Head, Service};
use std::collections::VecDeque;
use std::time::Duration;
use units::Moment;

/// A request to the modelled disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskRequest {
    pub(super) arrival: Moment,
    pub(super) offset: u64,
    pub(super) len: u64,
    /// A flush makes earlier writes safe from a power cut; it has no place and no length.
    pub(super) what: Access,
}

/// Requests that wait for a modelled disk, and their service order. `T` is a payload that is
/// returned with its request.
#[derive(Debug)]
pub(super) struct CommandQueue<T> {
    head: Head,
    depth: usize,
    waiting: VecDeque<(DiskRequest, T)>,
    /// The moment at which the arm is free.
    free: Moment,
}

impl<T> CommandQueue<T> {
    /// Makes an empty queue. `depth` is the number of oldest requests among which the disk chooses
    /// the nearest; 1 means order of arrival.
    pub(super) fn new(head: Head, depth: u32) -> Self {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX).max(1);
        Self { head, depth, waiting: VecDeque::new(), free: Moment::ZERO }
    }

    /// Adds a request. Arrival times never decrease.
    pub(super) fn arrive(&mut self, request: DiskRequest, with: T) {
        debug_assert!(self.waiting.back().is_none_or(|(last, _)| last.arrival <= request.arrival));
        self.waiting.push_back((request, with));
    }

    /// The next request whose service has begun by `now`, if there is one.
    pub(super) fn next(&mut self, now: Moment) -> Option<(DiskRequest, T, Service)> {
        let oldest = self.waiting.front()?.0.arrival;
        let chosen = if self.head.model().rotational() {
            // The choice is made as late as on a real disk: among all that have arrived when the
            // arm is free.
            if now < self.free {
                return None;
            }
            self.nearest(self.free.max(oldest))
        } else {
            0
        };
        let (request, with) = self.waiting.remove(chosen)?;
        // From the model's own moments and not from `now`: a late caller does not delay the disk.
        let start = self.free.max(request.arrival);
        let service = match request.what {
            Access::Flush => flushed(start, self.head.flush(start)),
            what => self.head.serve(start, request.offset, request.len, what == Access::Write),
        };
        if self.head.model().rotational() {
            self.free = service.finish;
        }
        Some((request, with, service))
    }

    /// Removes all waiting requests, which the disk will not serve any more.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (DiskRequest, T)> + '_ {
        self.waiting.drain(..)
    }

    /// The index of the request that the arm, free at `at`, reaches first among those that had
    /// arrived by then; the oldest, if it has waited longer than a disk allows.
    fn nearest(&self, at: Moment) -> usize {
        if at.since(self.waiting[0].0.arrival) > PATIENCE {
            return 0;
        }
        let open = |(r, _): &&(DiskRequest, T)| r.arrival <= at && r.what != Access::Flush;
        // `take_while` stops at a flush: nothing behind it may be served before it.
        let known = self.waiting.iter().take(self.depth).take_while(open);
        let reach = |(r, _): &(DiskRequest, T)| {
            self.head.positioning(at, r.offset, r.what == Access::Write)
        };
        // Of equally near requests the first is the oldest.
        known.enumerate().min_by_key(|(_, waiting)| reach(waiting)).map_or(0, |(place, _)| place)
    }
}

/// The service of a flush, which has no parts.
fn flushed(start: Moment, finish: Moment) -> Service {
    let none = Duration::ZERO;
    Service { start, overhead: none, seek: none, rotation: none, transfer: none, finish }
}

/// The longest wait before a request takes precedence. Real disks limit it too, to an unpublished
/// time; half a second is about forty random reads.
const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;
    use disk::DiskModel;

    const MB: u64 = 1_000_000;

    fn line(model: &str, depth: u32) -> CommandQueue<u64> {
        CommandQueue::new(DiskModel::preset(model).unwrap().head(), depth)
    }

    fn read(arrival: u64, offset: u64) -> DiskRequest {
        DiskRequest { arrival: Moment(arrival), offset, len: 4096, what: Access::Read }
    }

    /// The order in which these requests are served if all are waiting from the start.
    fn served(mut line: CommandQueue<u64>, requests: &[DiskRequest]) -> Vec<u64> {
        for request in requests {
            line.arrive(*request, request.offset / MB);
        }
        let mut order = Vec::new();
        while let Some((_, place, _)) = line.next(Moment::MAX) {
            order.push(place);
        }
        order
    }

    #[test]
    fn a_disk_that_may_choose_serves_the_nearest_first() {
        let places = [0, 8000, 30, 7990, 60].map(|mb| read(0, mb * MB));
        assert_eq!(served(line("st39183w", 1), &places), [0, 8000, 30, 7990, 60]);
        assert_eq!(served(line("st39183w", 2), &places), [0, 30, 8000, 7990, 60]);
        let chosen = served(line("st39183w", 32), &places);
        assert_eq!(chosen[..3].iter().max(), Some(&60), "the near ones first: {chosen:?}");
    }

    #[test]
    fn nothing_overtakes_a_flush() {
        let mut requests = [0, 8000, 30, 60].map(|mb| read(0, mb * MB)).to_vec();
        requests.insert(2, DiskRequest { what: Access::Flush, len: 0, ..read(0, MB) });
        assert_eq!(served(line("st39183w", 32), &requests)[..3], [0, 8000, 1]);
    }

    #[test]
    fn only_requests_that_had_arrived_by_then_are_considered() {
        let mut line = line("st39183w", 32);
        line.arrive(read(0, 0), 0);
        let (_, _, first) = line.next(Moment(0)).unwrap();
        assert!(line.next(first.finish).is_none(), "nothing waits");
        line.arrive(read(1, 8000 * MB), 1);
        line.arrive(read(first.finish.0 + 1, 4096), 2);
        assert!(line.next(Moment(first.finish.0 - 1)).is_none(), "it is not free yet");
        // A late call gives the same decision as one in time.
        let (_, place, second) = line.next(first.finish + Duration::from_millis(3)).unwrap();
        assert_eq!((place, second.start), (1, first.finish));
    }

    #[test]
    fn no_request_waits_for_ever() {
        let mut line = line("st39183w", 32);
        line.arrive(read(0, 8000 * MB), u64::MAX);
        let (mut now, mut near) = (Moment::ZERO, 0);
        loop {
            for _ in 0..2 {
                line.arrive(read(now.0, near * MB / 8), near);
                near += 1;
            }
            let (_, place, service) = line.next(Moment::MAX).unwrap();
            now = service.finish;
            if place == u64::MAX {
                break;
            }
        }
        assert!(near > 20, "the near ones went first, for a while: {near}");
        assert!(now < Moment::ZERO + PATIENCE + Duration::from_millis(60), "{now:?}");
    }

    #[test]
    fn without_an_arm_services_overlap() {
        let mut line = line("ssd-nvme", 32);
        (0..10).for_each(|i| line.arrive(read(0, i * MB), i));
        let done: Vec<_> = (0..10).map(|_| line.next(Moment(0)).unwrap()).collect();
        assert!(done.iter().map(|(_, place, _)| *place).eq(0..10));
        assert!(done[9].2.finish < Moment(100_000), "one latency for all: {:?}", done[9].2);
    }
}
