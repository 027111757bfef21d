//! Which deadlines are read for together: the plan that admission by disk time leaves for the run,
//! and the rule by which the run keeps it.
//!
//! ```text
//!   due slot     3  4  5 │ 6  7 │ 8 │ 9 10 11 12 │ ...     windows: consecutive due slots, read in
//!   plan         ──w1─── │ ─w2─ │ w3│ ───w4───── │         one sweep, all done by the first's end
//!   run, early   ─────w1 ∪ w2────── │ ──w3 ∪ w4─────        whole windows joined, never cut
//! ```
//!
//! # Why being early never costs later
//!
//! The plan says of each window `i` that it begins at `s(i)`, when the window before is done and
//! its buffers are free, takes at most `W(i)`, and is done by `d(i)`, the end of its first due
//! slot. The run begins with window `i` no later than `s(i)` (by induction; for the first see the
//! next section). It reads either that window alone,
//! or several whole ones if they fit into what is free and are done by `d(i)`, less the slack that
//! the plan leaves everywhere (so the run leaves it everywhere, too):
//!
//! - joined, they are done at most `W(i ∪ … ∪ j) ≤ W(i) + … + W(j)` later
//!   ([`disk::Costs`] is subadditive), so window `j + 1` begins no later than `s(j + 1)`;
//! - what is due in `i` has `d(i)`, and what is due later has longer;
//! - buffers: what is held after window `i` at a given moment is the same however early it was
//!   read, so a window that the plan could begin at `s(i)` can begin then in the run, or sooner.
//!
//! `W` counts visits: reads of one stream that lie one behind the other are given to the disk in
//! that order, at once, and are charged one positioning (`visits`). That keeps all of this. Joined
//! windows have no more visits than they had apart. A visit is cut where a plan is, and there both
//! parts were charged. What is counted is what is unread: of a visit that is broken off, the rest
//! is charged anew in the plan for which it was.
//!
//! # When the first window begins
//!
//! A plan is made at any moment. The device then has reads, the end of one sweep and perhaps the
//! beginning of the next behind it; some chosen reads cannot become unread; there may be
//! best-effort work between them. `s(1)` is the time at which all of this is done, at the latest
//! ([`Supply::free_at`]):
//!
//! ```text
//!   s(1) = last activity + Σ (step to the read + its transfer) + best-effort work + the way back
//!
//!   step          one positioning at the seek bound of its own distance: arm → first → next → ...
//!                 a sequential read without a pause before it: the cost of a following read
//!   work          of each read of it: a seek from anywhere to anywhere, the largest transfer
//!   the way back  Costs::unknown_start, if no read of a stream comes behind the work
//! ```
//!
//! - The bound of a sweep, `W`, does not hold for this rest. `W` is for a sweep that begins with
//!   the end nearer to the head. The end of one sweep with the beginning of the next may cross the
//!   disk twice, and a rest of `n` reads may have the longest of the sweep's seeks.
//! - The bound stays: a read that takes no longer than its own step and transfer moves the last
//!   activity forward by no more than it takes off the sum. So what the plan knew as `s(1)` is an
//!   upper bound at each later moment, too. A sum without one term for each read, such as `W` of
//!   what is left, does not have this property, and a run could be later than its plan.
//! - The sweep of the first window begins where the last read ends, with the nearer end: `W` holds.
//!   After best-effort work the place of the head is unknown, and the sweep may begin with the
//!   farther end. That costs at most `h(1) - h(1/2)` more ([`disk::Costs::unknown_start`]), which
//!   is in `s(1)`.
//! - Best-effort work begins only when nothing of a sweep is chosen: between two windows, or after
//!   all chosen reads have become unread and the plan for the rest was found to hold with the work
//!   before it. So it never cuts a window that is not planned anew.
//!
//! # Disks known by their pace
//!
//! The plan charges such a disk `once` for each pause and not for each sweep
//! ([`disk::Costs::after_pause`]; `admission::schedule` has the argument). The rule of the run
//! charges every sweep with it. So it joins fewer windows, and may read the first slot of a window
//! by itself that the plan reads whole. Neither makes a later window later: without `once` a sweep
//! of such a disk costs the sum of its reads, so that a window costs the same in two parts.
//!
//! # No window is cut
//!
//! On all other disks a window cut in two could cost a sweep more than the plan knew of, so none
//! ever is, unless the disk is behind its plan. A stream that leaves, or a piece found in memory,
//! only makes windows cheaper: `W` never falls with reads, visits or transfer, and a read whose
//! absence makes two visits of one has a transfer that is at least what a visit costs
//! ([`disk::Costs::shortest_following`]; a shorter one, of which a lead has some, may begin or end
//! a visit, but is never in its middle). Whoever comes in makes a new plan, from what is unread
//! then: a new proof.

use crate::books::DiskBooks;
use crate::supply::Supply;
use crate::visits::{Since, Swept};
use units::{Moment, SlotIndex};

/// The windows of one disk. Each slot that is in none is a window by itself. An empty plan holds no
/// memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowPlan {
    // First and last slot of each window that has more than one; all others are one slot.
    windows: Vec<(SlotIndex, SlotIndex)>,
    // Nanoseconds that every window is done before its deadline.
    slack: u64,
    // Whether a window is begun though it could end too late: see `WindowPlan::trust`.
    trusted: bool,
}

/// The next sweep of a disk that follows its [`WindowPlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextSweep {
    /// Everything unread that is due by the end of this slot, in one sweep.
    Batch {
        /// The last slot of the windows that are taken together.
        through: SlotIndex,
    },
    /// Memory is short. To be asked again when a buffer has been let go, and at the latest when
    /// this slot begins.
    Wait {
        /// When, by the books, there will be room.
        until: SlotIndex,
    },
    /// All is read.
    Nothing,
}

impl WindowPlan {
    /// Every window is done so many nanoseconds before its deadline, and stays so in the run.
    pub(crate) fn promise(&mut self, slack: u64) {
        self.slack = slack;
    }

    /// From now on windows are begun as planned, though the worst that their sweeps can take may be
    /// too late. For plans that were made by chance.
    pub(crate) fn trust(&mut self) {
        (self.slack, self.trusted) = (0, true);
    }

    /// One more window of several slots. They come in order.
    pub(crate) fn join(&mut self, first: SlotIndex, last: SlotIndex) {
        debug_assert!(self.windows.last().is_none_or(|before| before.1 < first), "in order");
        self.windows.push((first, last));
    }

    /// Takes back all windows of several slots but the first so many.
    pub(crate) fn truncate(&mut self, windows: usize) {
        self.windows.truncate(windows);
    }

    /// First and last slot of each window that has more than one.
    pub fn windows(&self) -> &[(SlotIndex, SlotIndex)] {
        &self.windows
    }

    /// The last slot of the window that `slot` is in.
    fn end_of(&self, slot: SlotIndex) -> SlotIndex {
        let at = self.windows.partition_point(|window| window.1 < slot);
        self.windows.get(at).filter(|window| window.0 <= slot).map_or(slot, |window| window.1)
    }

    /// What the disk reads next: the first window with anything unread, and as many whole ones
    /// with it as are done by its deadline and fit into memory.
    ///
    /// To be called when the device has room for a read and no batch is being issued;
    /// `supply.free_at` is when all that is in the device is certainly done. The caller stops at
    /// the first read that does not fit into memory: that can happen on a disk slower than its
    /// model.
    pub fn next(&self, books: &DiskBooks, supply: &Supply<'_>) -> NextSweep {
        let room = supply.memory.saturating_sub(books.held() + books.reserved());
        let overdue = books.overdue();
        if overdue.reads > 0 {
            // Late reads first, by themselves: their windows are over.
            return NextSweep::Batch { through: SlotIndex(books.current().0.saturating_sub(1)) };
        }
        let Some(first) = first_unread(books, books.current()) else { return NextSweep::Nothing };
        let deadline = (first + 1).start(supply.slot);
        let mut through = self.end_of(first);
        let mut taken = due(books, first, first, through);
        if taken.bytes > room {
            let missing = taken.bytes - room;
            // A window begins only when all of it fits: a part of it would fill the buffers that an
            // urgent read needs. Buffers that the clock releases in time are waited for.
            return match freed_by(books, missing, first) {
                Some(until) => NextSweep::Wait { until },
                // Waiting does not help: whatever fits, most urgent first.
                None => NextSweep::Batch { through: first },
            };
        }
        // The disk is behind its plan: save what is due first, without the rest of its window.
        if !self.trusted && !on_time(taken, supply, deadline) {
            return NextSweep::Batch { through: first };
        }
        // Working ahead must leave the slack that the plan has everywhere.
        let deadline = Moment(deadline.0.saturating_sub(self.slack));
        while let Some(next) = first_unread(books, through.next()) {
            // Whole windows only: a window cut in two could cost a sweep that was not counted.
            let end = self.end_of(next);
            let with = taken.and(due(books, first, next, end));
            if with.reads > MOST_READS || with.bytes > room || !on_time(with, supply, deadline) {
                break;
            }
            (taken, through) = (with, end);
        }
        NextSweep::Batch { through }
    }
}

fn on_time(sweep: Swept, supply: &Supply<'_>, deadline: Moment) -> bool {
    // Without costs no sweep is shown to be in time, so windows are never joined.
    let Some(costs) = &supply.timings.costs else { return false };
    let takes = costs.sweep(sweep.reads, sweep.follows, sweep.transfer);
    // Those that may come at once are in `free_at`.
    let takes = supply.timings.beside_writes(takes);
    supply.free_at.0.saturating_add(takes) <= deadline.0
}

fn first_unread(books: &DiskBooks, from: SlotIndex) -> Option<SlotIndex> {
    let skip = usize::try_from(from.0.saturating_sub(books.current().0)).ok()?;
    let ahead = books.ahead_of_now().get(skip..)?;
    let at = ahead.iter().position(|load| load.reads > 0)?;
    Some(from + at as u64)
}

// All that is unread and due from `from` to `last`, in a sweep of what is due from `first` on.
fn due(books: &DiskBooks, first: SlotIndex, from: SlotIndex, last: SlotIndex) -> Swept {
    let ahead = |slot: SlotIndex| {
        let ahead = usize::try_from(slot.0.saturating_sub(books.current().0));
        ahead.unwrap_or(usize::MAX).min(books.ahead_of_now().len())
    };
    let (from, until) = (ahead(from), ahead(last.next()));
    let mut sum = Swept::default();
    for (load, slot) in books.ahead_of_now()[from..until].iter().zip(from..) {
        // A sequential read needs no positioning only if the read before it is in this sweep.
        sum = sum.and(Swept::of(load, Since::slots(slot - ahead(first))));
    }
    sum
}

// When, before the end of `before`, so many bytes will have been let go.
fn freed_by(books: &DiskBooks, missing: u64, before: SlotIndex) -> Option<SlotIndex> {
    let mut freed = 0;
    for (load, ahead) in books.ahead_of_now().iter().zip(0..) {
        let slot = books.current() + ahead;
        // Memory that is freed at the end of `before` comes too late for a read due then.
        if slot >= before {
            return None;
        }
        freed += load.freed;
        if freed >= missing {
            return Some(slot.next());
        }
    }
    None
}

/// Reads in one sweep, at most: beyond, the seek part is too small for more to matter, and
/// whoever has no deadline would wait long for its end.
pub(crate) const MOST_READS: u64 = 256;
