//! Which copy of a title a newcomer is read from, and which it falls back to.
//!
//! ```text
//!   for each offer, best first
//!     for each place (a copy on a disk that is there; where losses must be survived, with each other
//!     copy as its spare)              ── the decision ──▶ admits, with so much slack
//!     the place with the most slack is taken; none admits ──▶ the next offer
//! ```

use super::door::{Booking, Chosen, Misfit};
use super::pieces::{times, unsound};
use super::{AdmitRequest, Engine, Layout, PieceTimes, Refusal, SessionId, TrackLayout};
use scheduler::{PolicyKind, Slack};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// A copy to be read from, and the disk with another.
#[derive(Clone, Debug)]
pub(super) struct Seating {
    pub(super) layout: Arc<Layout>,
    pub(super) spare: Option<usize>,
    /// All copies.
    pub(super) copies: Arc<[Arc<Layout>]>,
}

impl Engine {
    /// Where the title can be read from, as it was asked for first.
    pub(super) fn seatings(&self, request: &AdmitRequest) -> Vec<Seating> {
        let first = &request.layout;
        let alike = request.copies.iter().filter(|copy| is_copy(first, copy));
        let copies: Arc<[Arc<Layout>]> = std::iter::once(first).chain(alike).cloned().collect();
        let live = |layout: &&Arc<Layout>| self.is_live(layout);
        let mut seatings = Vec::new();
        for layout in copies.iter().filter(live) {
            let others = copies.iter().filter(live).filter(|other| other.disk != layout.disk);
            let spares: Vec<_> = others.map(|other| Some(usize::from(other.disk.0))).collect();
            let spares = if self.standby.is_wanted() { spares } else { Vec::new() };
            for spare in if spares.is_empty() { vec![None] } else { spares } {
                let (layout, copies) = (Arc::clone(layout), Arc::clone(&copies));
                seatings.push(Seating { layout, spare, copies });
            }
        }
        seatings
    }

    /// Whether the disk that it lies on is there.
    pub(super) fn is_live(&self, layout: &Layout) -> bool {
        self.disk_index(layout.disk).is_some_and(|disk| !self.disks[disk].lost)
    }

    /// The first offer that fits somewhere, there where most room is left; or all that do not. What
    /// was decided on is at hand.
    pub(super) fn seat(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
        session: SessionId,
    ) -> Result<Chosen, Result<Vec<Misfit>, Refusal>> {
        let seatings = self.seatings(request);
        let from_ms = u32::try_from(request.from.as_millis()).unwrap_or(u32::MAX);
        let mut misfits = Vec::new();
        let mut reason = "nothing was offered".to_owned();
        for (offer, tracks) in request.offers.iter().enumerate() {
            let mut best: Option<((Duration, Reverse<u64>), Booking)> = None;
            let mut short = Vec::new();
            for seating in &seatings {
                let mut booking = match self.booking(now, session, seating, tracks, from_ms) {
                    Ok(booking) => booking,
                    Err(detail) => {
                        reason = detail;
                        continue;
                    }
                };
                let disk = booking.disk();
                self.demand_of(&mut booking);
                match self.fits(disk) {
                    Ok(slack) => {
                        let room = self.room_left(disk, slack);
                        if best.as_ref().is_none_or(|(most, _)| room > *most) {
                            best = Some((room, booking));
                        }
                    }
                    Err(shortage) => short.push((booking, shortage)),
                }
            }
            if let Some((_, mut booking)) = best {
                // Decided once more, so that it is at hand, unless it was the only one.
                if seatings.len() > 1 {
                    self.demand_of(&mut booking);
                    self.fits(booking.disk()).expect("it did just now");
                }
                return Ok(Chosen { offer, booking, slots: 0 });
            }
            for (mut booking, shortage) in short {
                match self.make_fit(now, &mut booking, shortage) {
                    Ok(()) => return Ok(Chosen { offer, booking, slots: 0 }),
                    Err(shortage) => {
                        let without = self.without;
                        misfits.push(Misfit { offer, booking, shortage, without });
                    }
                }
            }
        }
        Err(if misfits.is_empty() { Err(self.never(reason)) } else { Ok(misfits) })
    }

    // To compare disks by: what the schedule has to spare; then, which has less to do.
    fn room_left(&self, disk: usize, slack: Slack) -> (Duration, Reverse<u64>) {
        let state = &self.disks[disk];
        let each = self.config.slot / state.guard.min_read().max(1);
        let time = match slack {
            Slack::Time(time) => time,
            Slack::Reads(reads) => each.saturating_mul(u32::try_from(reads).unwrap_or(u32::MAX)),
            Slack::Unknown => Duration::ZERO,
        };
        (time, Reverse(state.books.unread()))
    }

    /// Makes sure that the times of the pieces are known of all copies, if their disks' are: of each
    /// piece the longest, so that it is booked alike wherever it is read. Of a disk whose times are not
    /// known nobody can say what goes on there.
    pub(super) fn time_copies(&self, copies: &[Arc<Layout>], number: usize) {
        let tracks = || copies.iter().map(|layout| (layout, &layout.tracks[number]));
        if tracks().any(|(_, track)| track.times.get().is_some()) {
            return;
        }
        let (mut longest, mut unknown) = (None::<PieceTimes>, false);
        for (layout, track) in tracks() {
            let Some(times) = self.piece_times(usize::from(layout.disk.0), track) else {
                unknown = true;
                continue;
            };
            longest = Some(match longest {
                None => times,
                Some(before) => before.longest(&times),
            });
        }
        let Some(mut longest) = longest else { return };
        if unknown {
            longest.followed.clear();
        }
        for (_, track) in tracks() {
            track.times.get_or_init(|| longest.clone());
        }
    }

    /// What the pieces of a sound track take of `disk`, if that is known.
    pub(super) fn piece_times(&self, disk: usize, track: &TrackLayout) -> Option<PieceTimes> {
        let state = self.disks.get(disk)?;
        let costs = state.facts.costs.as_ref()?;
        if unsound(track, state.guarantee.read_size.0).is_some() {
            return None;
        }
        Some(times(track, costs))
    }

    /// Whether anybody is refused at all.
    pub(super) fn refuses(&self) -> bool {
        self.config.policy != PolicyKind::None
    }
}

// The same pieces of the same title, somewhere else.
fn is_copy(first: &Layout, other: &Layout) -> bool {
    let alike = |(a, b): (&TrackLayout, &TrackLayout)| {
        a.bytes == b.bytes && a.piece == b.piece && a.due == b.due && a.stored == b.stored
    };
    first.title == other.title
        && first.disk != other.disk
        && first.tracks.len() == other.tracks.len()
        && first.tracks.iter().zip(&other.tracks).all(alike)
}
