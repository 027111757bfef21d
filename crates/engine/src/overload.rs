//! Overload: a disk has long been slower than what is booked on it. Some of its sessions end, so
//! that the others are on time again.
//!
//! ```text
//!   a disk is behind
//!     at once        no best-effort work; no newcomer, no seek and no larger rendition that does
//!                    not fit at its present speed; fills are refused
//!     for LASTING    players see late segments, and most change to smaller renditions by
//!       slots          themselves: their bookings shrink with the requests for these
//!     longer, and    sessions end, the lowest priority first, of one priority the newest first,
//!       ever more      until what is left can be read in HORIZON slots at the speed that the disk
//!                      has shown since it fell behind; at most MOST_ENDED, and never the last
//! ```
//!
//! A session whose end takes nothing off the disk (it follows another viewer, or is done) stays.
//! The disk then has LASTING slots to catch up before any more end. Smaller renditions cannot be
//! forced: a player fetches what it chooses, and a session that has no smaller one ends as well.
//!
//! Decided are reads, from the books and the disk's count of them, and not by the policy: its
//! verdict on a disk that is behind is a refusal, however much of it has ended.

use super::bookings::Placement;
use super::bookings::backlog::Backlog;
use super::departure::GiveWay;
use super::sessions::Session;
use super::{CutShort, Engine, Resource};
use units::Moment;

impl Engine {
    /// A slot has begun: sessions end on disks that have long been slower than what is booked.
    pub(super) fn relieve_overloaded(&mut self, now: Moment) {
        for disk in 0..self.streams.bookings.disks.len() {
            let state = &self.streams.bookings.disks[disk];
            let speed = state.backlog.speed_if_overloaded();
            // A disk that waits for memory is behind as well, and not slow.
            let is_slow = !state.lost && state.timings.slowdown > 0;
            let is_bound = is_slow && self.streams.bookings.refuses();
            let Some(speed) = speed.filter(|_| is_bound) else { continue };
            self.end_until_it_holds(now, disk, speed);
            self.streams.bookings.disks[disk].backlog = Backlog::default();
        }
    }

    // Ends sessions of a disk until it holds the rest at this speed, in thousandths of reads in a
    // slot.
    fn end_until_it_holds(&mut self, now: Moment, disk: usize, speed: u64) {
        let here = Placement { disk, replica: None };
        let who = GiveWay::for_shortfalls([(here, Resource::Disk)]);
        let is_here = |session: &Session| session.placement().disk == disk;
        let mut order = self.give_way_order(is_here, &who);
        // The last is served as well as the disk can.
        order.pop();
        let mut ended = 0;
        for id in order {
            let booked = self.streams.bookings.disks[disk].due_within(HORIZON);
            if booked * 1000 <= speed.saturating_mul(HORIZON as u64) || ended == MOST_ENDED {
                return;
            }
            let suspended = self.suspend(id);
            if self.streams.bookings.disks[disk].due_within(HORIZON) < booked {
                self.cut_short(now, suspended, CutShort::Overload);
                ended += 1;
            } else {
                self.resume(suspended);
            }
        }
    }
}

/// Slots within which an overloaded disk is to be on time again, and to read what falls due
/// meanwhile: a minute of 500 ms slots. In a shorter time far more sessions would have to end.
const HORIZON: usize = 120;

/// Sessions that end at once on one disk. Where that is not enough, more end when it has been
/// behind for as long again.
const MOST_ENDED: usize = 64;
