//! When the viewers of one disk start: the pace of a crowd, and how long a newcomer may be made to
//! wait.
//!
//! A later start helps a crowd: many viewers who come within a moment, and nobody after them. The
//! time that follows is free, and those who wait fill it. It helps nobody while as many come as
//! leave or more: who waits takes the start of a viewer who comes later, who then has to wait as
//! well. A queue that newcomers join for as long as it stands never becomes shorter. So the queue
//! of a crowd has an end, and those who come later wait only for a moment:
//!
//! ```text
//!                     0 s          the first viewer who cannot start at once
//!   the crowd comes   ├────────┤ within 2 s                 waits as long as agreed (`--wait`, 5 s)
//!   starts given      ├────────────────────────────────┤ until the last of these has started
//!   a viewer at 4 s                   ├────────────────┤ waits for 3 s at most
//!   from 5.5 s on                            ├─────────┤ for 1.5 s, as long as the queue lasts
//! ```
//!
//! It is a crowd if more come in one slot than the pace allows. If no more come, and one has to
//! wait all the same, the disk is full of those who came before: the first waits as long as agreed,
//! those behind for one slot more than on the empty disk. Where few come, one after another, nobody
//! is behind. A viewer who has chosen its wait (`?wait=`) is given a start within it all the same:
//! it knows what it waits for. A queue is over when for [`QUIET`] nobody had to wait and nobody was
//! refused.
//!
//! A crowd may be larger than all slots within its wait have starts for by the pace. Those who are
//! left start as late as they can, with as little as they can start with: without the leads of
//! their tracks, as do those who start in the second half of the wait. Their next reads are due
//! soonest, but when nobody starts any more.
//!
//! Knows shares of the disk and times. Whether a viewer fits at a start is decided in `evaluate`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use units::{Moment, SlotIndex, nanos};

/// The starts of one disk's viewers, and the queue for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Starts {
    /// By slot, the share of the disk that the viewers take on average who start in it.
    begun: BTreeMap<SlotIndex, u64>,
    /// The share of the disk that the viewers take who have come in this slot, admitted or not.
    came: u64,
    /// Slots by which the last candidate of this slot was delayed, if any was.
    pub(crate) last_delay: u32,
    /// Slots by which the last candidate of this slot was delayed that starts although all slots
    /// are taken; `None`: there was none.
    pub(crate) last_latest: Option<u32>,
    /// Slots for which a candidate of this slot would wait on the empty disk; `None`: nobody has
    /// asked.
    pub(crate) alone: Option<u32>,
    queue: Option<Queue>,
    /// When the last viewers came, at most [`FEW`].
    came_at: VecDeque<Moment>,
    /// When the last start that was given to a waiting viewer begins.
    waits_until: Moment,
}

/// Viewers who could not start when they came.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// When the first of them came.
    began: Moment,
    /// When the last of them came so far.
    last: Moment,
    /// Whether more came in one slot than the pace allows, while its first viewers waited.
    of_crowd: bool,
}

impl Queue {
    // The slots for which it has lasted since its crowd had come, rounded up.
    fn stands(&self, newcomer: Newcomer) -> u32 {
        let time = newcomer.now.since(self.began + CROWD_COMES_WITHIN);
        let slots = nanos(time).div_ceil(nanos(newcomer.length).max(1));
        u32::try_from(slots).unwrap_or(u32::MAX)
    }
}

/// A viewer who asks for a start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    pub(crate) now: Moment,
    /// The slot that runs now.
    pub(crate) slot: SlotIndex,
    /// How long a slot is.
    pub(crate) length: Duration,
    /// The share of the disk that the viewer takes on average.
    pub(crate) share: u64,
    /// The wait that the viewer agrees to.
    pub(crate) agreed: AgreedWait,
}

/// The wait that a viewer agrees to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgreedWait {
    pub(crate) slots: u32,
    /// Whether the viewer has chosen it: then no queue makes it shorter.
    pub(crate) is_chosen: bool,
}

impl Starts {
    /// A slot begins.
    pub(crate) fn slot_begins(&mut self, slot: SlotIndex) {
        self.begun = self.begun.split_off(&slot);
        (self.last_delay, self.last_latest, self.alone, self.came) = (0, None, None, 0);
    }

    /// A newcomer starts so many slots from now, or not at all.
    pub(crate) fn note(&mut self, newcomer: Newcomer, starts: Option<u32>) {
        if starts != Some(0) {
            self.note_wait(newcomer);
        }
        self.came += newcomer.share;
        if self.came_at.len() == FEW {
            self.came_at.pop_front();
        }
        self.came_at.push_back(newcomer.now);
        if let Some(slots) = starts {
            self.waits_until = self.waits_until.max(newcomer.now + newcomer.length * slots);
            *self.begun.entry(newcomer.slot + u64::from(slots)).or_default() += newcomer.share;
        }
    }

    fn note_wait(&mut self, newcomer: Newcomer) {
        let Newcomer { now, agreed, .. } = newcomer;
        let mut queue =
            self.queue_at(now).unwrap_or(Queue { began: now, last: now, of_crowd: false });
        queue.last = now;
        queue.of_crowd |= queue.stands(newcomer) < agreed.slots && self.came >= pace(agreed.slots);
        self.queue = Some(queue);
    }

    /// The slots for which a newcomer may be made to wait, at most, who would have to wait for
    /// `alone` slots on the empty disk.
    pub(crate) fn patience(&self, newcomer: Newcomer, alone: u32) -> u32 {
        let Newcomer { now, agreed: AgreedWait { slots: agreed, is_chosen }, .. } = newcomer;
        let Some(queue) = self.queue_at(now).filter(|_| !is_chosen) else { return agreed };
        if self.is_alone(now) {
            return agreed;
        }
        if !queue.of_crowd {
            return agreed.min(alone + IN_FULL_HOUSE);
        }
        let least = agreed.min(alone + BEHIND_CROWD);
        agreed.saturating_sub(queue.stands(newcomer)).max(least)
    }

    /// The first slot, so many from now and at most `patience`, in which a newcomer may start, so
    /// that no slot has more starts than there is room for the next reads of. `None` if all these
    /// slots are taken.
    pub(crate) fn paced_start(&self, newcomer: Newcomer, patience: u32) -> Option<u32> {
        (0..=patience).find(|slots| self.has_room(newcomer, *slots))
    }

    // Whether so many slots from now there are fewer starts than the pace allows.
    fn has_room(&self, newcomer: Newcomer, slots: u32) -> bool {
        let slot = newcomer.slot + u64::from(slots);
        // Those who start from memory take nothing of the disk then.
        match self.begun.get(&slot).filter(|begun| **begun > 0) {
            Some(begun) => begun + newcomer.share <= pace(newcomer.agreed.slots),
            // A slot in which nobody starts although one has looked there has no room at all.
            None => slots >= self.last_delay,
        }
    }

    // Whether nobody waits now, and so few come that nobody will have to wait because of another.
    fn is_alone(&self, now: Moment) -> bool {
        let few = self.came_at.len() < FEW || now.since(self.came_at[0]) > QUIET;
        few && self.waits_until <= now
    }

    // The queue that is not over by `now`.
    fn queue_at(&self, now: Moment) -> Option<Queue> {
        self.queue.filter(|queue| now.since(queue.last) <= QUIET)
    }
}

// The share of the disk that starts in one slot at most, by the slots that viewers agree to wait.
fn pace(agreed: u32) -> u64 {
    let (waits, of) = HOUSE_STARTS_WITHIN;
    WHOLE_DISK * of / (waits * u64::from(agreed.max(1)))
}

/// Parts in which shares of a disk are counted.
pub(crate) const WHOLE_DISK: u64 = 1 << 30;

/// The pace at which viewers start: that of a full house within so many waits, a numerator and a
/// denominator. With fewer, some of those who come within ten seconds are refused, because those
/// who started at once need their second reads; with more, all wait for longer.
const HOUSE_STARTS_WITHIN: (u64, u64) = (39, 16);

/// Viewers who come within so long after the first of a queue belong to its crowd, and wait as long
/// as agreed.
const CROWD_COMES_WITHIN: Duration = Duration::from_secs(2);

/// Slots for which a viewer may wait who comes when the starts of a crowd are given. With fewer, a
/// full house that comes within ten seconds is not admitted whole; with more, everybody waits for
/// as long.
const BEHIND_CROWD: u32 = 3;

/// Slots for which a viewer may wait behind another in a full house: with none, viewers are refused
/// whom the next slot has room for.
const IN_FULL_HOUSE: u32 = 1;

/// Fewer viewers than these in [`QUIET`] are no overload: on a disk that is slow for a moment each
/// of them may wait as long as agreed, one after another.
const FEW: usize = 10;

/// A queue is over when for so long nobody had to wait: as long as the first viewers of a crowd
/// wait, by default.
const QUIET: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_millis(500);

    // Comes at this time, takes a 500th of the disk, and agrees to wait for five seconds.
    fn newcomer(ms: u64) -> Newcomer {
        let now = Moment(ms * 1_000_000);
        Newcomer {
            now,
            slot: SlotIndex::at(now, SLOT),
            length: SLOT,
            share: WHOLE_DISK / 500,
            agreed: AgreedWait { slots: 10, is_chosen: false },
        }
    }

    // More come in one slot than the pace allows, and one of them cannot start at once.
    fn crowd(starts: &mut Starts, ms: u64) {
        for _ in 0..=pace(10) / newcomer(ms).share {
            starts.note(newcomer(ms), Some(0));
        }
        starts.note(newcomer(ms), None);
    }

    #[test]
    fn those_who_come_after_a_crowd_wait_until_it_has_started_or_for_a_moment() {
        let mut starts = Starts::default();
        let left = |starts: &Starts, ms| starts.patience(newcomer(ms), 0);
        assert_eq!(left(&starts, 60_000), 10, "nobody waits");
        crowd(&mut starts, 60_000);
        // (milliseconds after its beginning, slots that a newcomer waits at most)
        let waits = [(0, 10), (2000, 10), (2001, 9), (4000, 6), (5500, 3), (8000, 3), (9000, 3)];
        for (ms, slots) in waits {
            assert_eq!(left(&starts, 60_000 + ms), slots, "after {ms} ms");
            (0..FEW).for_each(|_| starts.note(newcomer(60_000 + ms), Some(0)));
            starts.note(newcomer(60_000 + ms), Some(1));
        }
        // It lasts for as long as somebody has to wait, and ends five seconds after.
        assert_eq!([74_000, 74_001].map(|ms| left(&starts, ms)), [3, 10]);
        starts.slot_begins(SlotIndex(148));
        crowd(&mut starts, 74_400);
        assert_eq!(left(&starts, 77_400), 8, "another crowd");
    }

    #[test]
    fn in_a_full_house_one_waits_as_long_as_agreed_and_those_behind_for_a_slot() {
        let mut starts = Starts::default();
        assert_eq!(starts.patience(newcomer(0), 0), 10);
        for ms in (0..20_000).step_by(100) {
            starts.slot_begins(newcomer(ms).slot);
            starts.note(newcomer(ms), None);
            // It is no crowd either that comes to a house that has been full for longer.
            if ms == 10_000 {
                crowd(&mut starts, ms);
            }
            let waits = if ms < 900 { 10 } else { 1 };
            assert_eq!(starts.patience(newcomer(ms), 0), waits, "after {ms} ms");
        }
    }

    #[test]
    fn of_few_who_come_one_after_another_each_waits_as_long_as_agreed() {
        let mut starts = Starts::default();
        let left = |starts: &Starts, ms| starts.patience(newcomer(ms), 0);
        for ms in (0..30_000).step_by(1500) {
            assert_eq!(left(&starts, ms), 10, "after {ms} ms");
            starts.note(newcomer(ms), Some(2));
            assert_eq!(left(&starts, ms + 999), 1, "behind one who waits");
        }
        for ms in (30_000..40_000).step_by(100) {
            starts.note(newcomer(ms), Some(0));
        }
        starts.slot_begins(newcomer(40_000).slot);
        starts.note(newcomer(40_000), Some(1));
        assert_eq!(left(&starts, 40_500), 1, "many come");
    }

    #[test]
    fn nobody_waits_for_longer_than_agreed() {
        let mut starts = Starts::default();
        crowd(&mut starts, 0);
        for (slots, left) in [(0, 0), (1, 1), (8, 6), (60, 58)] {
            let agreed = |is_chosen| AgreedWait { slots, is_chosen };
            let one = |is_chosen| Newcomer { agreed: agreed(is_chosen), ..newcomer(3000) };
            assert_eq!(starts.patience(one(false), 0), left);
            assert_eq!(starts.patience(one(true), 0), slots, "as long as the viewer has chosen");
        }
    }

    #[test]
    fn a_start_is_given_in_the_first_slot_that_has_room() {
        let (mut starts, one) = (Starts::default(), newcomer(3500));
        // A slot has the starts of 8/195 of the disk.
        let given: Vec<Option<u32>> = (0..100)
            .map(|_| {
                let slots = starts.paced_start(one, 3);
                starts.note(one, slots);
                slots
            })
            .collect();
        let count = |slots| given.iter().filter(|other| **other == slots).count();
        assert_eq!([0, 1, 2, 3].map(|slots| count(Some(slots))), [20; 4]);
        assert_eq!(count(None), 20, "the last find no room");
    }
}
