//! Memory that is kept from read-ahead, for the beginnings of titles that viewers come back to.
//!
//! ```text
//!   memory of a disk   │ held, read ahead by streams                │ beginnings │
//!                                                                     ▲        │
//!                      a slot begins, and all streams are on time ────┘        │
//!                      with the rest                                           │
//!                      a newcomer or a seek does not fit beside it ◀ given back ┘
//! ```
//!
//! Streams read ahead into all memory that there is, and what they hold cannot be taken back: a
//! few viewers at a quiet time would drive out all beginnings that a crowd could start from
//! (`resident`). Read-ahead is worth little where all streams are on time without it, so the
//! beginnings have precedence over it, by the evaluation that decides on newcomers, with less
//! memory instead of more streams. They have none over anything that is decided: what does not fit
//! beside them is decided with all memory, and what that leaves is kept again from the next slot
//! on.
//!
//! A title's beginning counts as one that viewers come back to from the second viewer on, also if
//! it was driven out in between. That is remembered of the latest titles, as by the list `A1out`
//! of 2Q (see `buffers`).

use super::Streams;
use crate::TitleKey;
use crate::bookings::evaluate::{Approval, Shortfall};
use crate::buffers::{POPULAR_PART, TitlePart};
use crate::stream::Stream;
use std::collections::BTreeMap;
use units::Moment;

/// The titles for which viewers have come lately.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentTitles {
    /// When the last viewer of each title came, and whether another one came before.
    titles: BTreeMap<TitleKey, (u64, bool)>,
    /// The titles, the one whose last viewer came first is the first.
    by_age: BTreeMap<u64, TitleKey>,
    viewers: u64,
}

impl RecentTitles {
    /// A viewer has come for a title.
    pub(super) fn note(&mut self, title: TitleKey) {
        self.viewers += 1;
        let before = self.titles.get(&title).and_then(|(age, _)| self.by_age.remove(age));
        self.titles.insert(title, (self.viewers, before.is_some()));
        self.by_age.insert(self.viewers, title);
        if self.titles.len() > MOST_TITLES
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.titles.remove(&oldest);
        }
    }

    fn is_popular(&self, title: TitleKey) -> bool {
        self.titles.get(&title).is_some_and(|(_, again)| *again)
    }
}

impl Streams {
    /// The part of its title that a piece of a stream is of.
    pub(super) fn part_of(&self, stream: &Stream, piece: u32) -> TitlePart {
        let disk = usize::from(stream.layout.disk.0);
        match stream.is_of_beginning(piece) {
            false => TitlePart::Rest,
            // Where nobody starts from memory, what is used again is what counts.
            true if self.bookings.gathers(disk) && self.recent.is_popular(stream.layout.title) => {
                TitlePart::PopularBeginning
            }
            true => TitlePart::Beginning,
        }
    }

    /// Keeps memory from the read-ahead of the slot that has begun.
    pub(crate) fn keep_beginnings(&mut self, now: Moment) {
        for disk in 0..self.bookings.disks.len() {
            let wanted = self.wanted_for_beginnings(disk);
            let kept = self.bookings.disks[disk].beginnings.bytes;
            if wanted < kept {
                self.bookings.disks[disk].give_back_beginnings(kept - wanted);
            } else if wanted > kept
                && self.bookings.disks[disk].beginnings.is_tried(self.bookings.slot())
            {
                self.keep_more(now, disk, wanted - kept);
            }
        }
    }

    fn keep_more(&mut self, now: Moment, disk: usize, bytes: u64) {
        let fits = |streams: &mut Self| streams.fits_with_less(disk, bytes);
        let approval = fits(self).or_else(|| self.drop_readahead_until(now, disk, fits));
        let slot = self.bookings.slot();
        let beginnings = &mut self.bookings.disks[disk].beginnings;
        match approval {
            Some(approval) => {
                beginnings.bytes += bytes;
                self.adopt(approval);
            }
            // Each attempt is an evaluation or three, so they are few.
            None => beginnings.not_before = slot + AGAIN_SLOTS,
        }
    }

    // What is to be kept of a disk's memory: its part of what popular beginnings have, in steps, so
    // that read-ahead is seldom given up for it.
    fn wanted_for_beginnings(&self, disk: usize) -> u64 {
        let state = &self.bookings.disks[disk];
        let share = self.bookings.share_of_memory(disk);
        // Newcomers start from memory where leads are gathered. While memory goes from disk to disk
        // none is kept.
        let is_settled = state.all_memory() == share && !self.bookings.owes_memory();
        if state.lost || state.draining || !self.bookings.gathers(disk) || !is_settled {
            return 0;
        }
        let total = self.buffers.total().max(1);
        let popular = self.buffers.popular_bytes().min(total / POPULAR_PART);
        let part = u128::from(share) * u128::from(popular) / u128::from(total);
        let part = u64::try_from(part).expect("less than the share");
        let step = (share / STEPS).max(1);
        part.next_multiple_of(step).min(share / POPULAR_PART)
    }

    /// What is kept of a disk's memory is for its streams until the next slot begins.
    pub(super) fn give_back_beginnings(&mut self, disk: usize) {
        let state = &mut self.bookings.disks[disk];
        state.give_back_beginnings(state.beginnings.bytes);
    }

    /// What `evaluate` says beside what is kept of a disk's memory; if it does not fit so, with all
    /// memory.
    pub(super) fn with_beginnings(
        &mut self,
        disk: usize,
        evaluate: impl Fn(&mut Self) -> Result<Approval, Shortfall>,
    ) -> Result<Approval, Shortfall> {
        let result = evaluate(self);
        let kept = self.bookings.disks[disk].beginnings.bytes;
        if result.is_ok() || kept == 0 {
            return result;
        }
        self.give_back_beginnings(disk);
        let result = evaluate(self);
        let state = &mut self.bookings.disks[disk];
        // Nothing was read in between, so that it can be kept as it was. After many refusals in a
        // slot it is not, and those that follow are evaluated once each.
        if result.is_err() && state.beginnings.outlasts_refusal() {
            state.keep_beginnings(kept);
        }
        result
    }
}

/// Number of titles that are remembered, more than those whose beginnings are in memory: a quarter
/// of 16 GiB has 1,000 beginnings of 4 MiB.
const MOST_TITLES: usize = 4096;

/// The steps in which memory is kept: parts of a disk's share.
const STEPS: u64 = 16;

/// Slots after which it is tried again to keep memory that the streams needed.
const AGAIN_SLOTS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_popular_from_its_second_viewer_on_while_it_is_one_of_the_latest() {
        let mut recent = RecentTitles::default();
        let note = |recent: &mut RecentTitles, titles: std::ops::Range<u64>| {
            titles.for_each(|title| recent.note(TitleKey(title)));
        };
        note(&mut recent, 0..2);
        note(&mut recent, 1..3);
        assert_eq!(
            [0, 1, 2, 3].map(|title| recent.is_popular(TitleKey(title))),
            [false, true, false, false]
        );
        // Title 0 is the one that is forgotten, and title 1 the next.
        let most = MOST_TITLES as u64;
        note(&mut recent, 10..10 + most - 2);
        assert!(recent.is_popular(TitleKey(1)));
        note(&mut recent, 5..6);
        note(&mut recent, 0..2);
        assert!(![0, 1].into_iter().any(|title| recent.is_popular(TitleKey(title))));
        assert_eq!((recent.titles.len(), recent.by_age.len()), (MOST_TITLES, MOST_TITLES));
    }
}
