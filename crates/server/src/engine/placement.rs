//! Placement: which copy of a title a newcomer is read from, and which one takes over on a loss.
//!
//! ```text
//!   for each offer, best first
//!     for each placement (a copy on a disk that is there; where losses must be survived, with each
//!     other copy as its replica)          ── evaluate ──▶ fits, with this slack
//!     the placement with the most slack is taken; none fits ──▶ the next offer
//! ```

use super::admission::{Choice, Rejected, Rejection};
use super::evaluate::Accepted;
use super::pieces::{times, validate};
use super::{AdmitRequest, Engine, Layout, PieceTimes, SessionId, TrackLayout};
use scheduler::Slack;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// A copy that a title can be read from, and the disk with the copy that takes over.
#[derive(Clone, Debug)]
pub(super) struct PlacementCandidate {
    pub(super) layout: Arc<Layout>,
    pub(super) replica: Option<usize>,
    /// All copies.
    pub(super) copies: Arc<[Arc<Layout>]>,
}

impl Engine {
    /// The placements of a title, in the order of its copies.
    pub(super) fn placements(&self, request: &AdmitRequest) -> Vec<PlacementCandidate> {
        let first = &request.layout;
        let alike = request.copies.iter().filter(|copy| is_copy(first, copy));
        let copies: Arc<[Arc<Layout>]> = std::iter::once(first).chain(alike).cloned().collect();
        let live = |layout: &&Arc<Layout>| self.is_live(layout);
        let mut placements = Vec::new();
        for layout in copies.iter().filter(live) {
            let others = copies.iter().filter(live).filter(|other| other.disk != layout.disk);
            let replicas: Vec<_> = others.map(|other| Some(usize::from(other.disk.0))).collect();
            let replicas = if self.failover.is_enabled() { replicas } else { Vec::new() };
            for replica in if replicas.is_empty() { vec![None] } else { replicas } {
                let (layout, copies) = (Arc::clone(layout), Arc::clone(&copies));
                placements.push(PlacementCandidate { layout, replica, copies });
            }
        }
        placements
    }

    /// Whether the disk of a copy is there.
    pub(super) fn is_live(&self, layout: &Layout) -> bool {
        self.disk_index(layout.disk).is_some_and(|disk| !self.disks[disk].lost)
    }

    /// The first offer that fits, at the placement with the most slack; if none fits, all
    /// candidates.
    pub(super) fn choose_placement(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
        session: SessionId,
    ) -> Result<Choice, Rejection> {
        let placements = self.placements(request);
        let from_ms = u32::try_from(request.from.as_millis()).unwrap_or(u32::MAX);
        let mut rejected = Vec::new();
        let mut reason = "nothing was offered".to_owned();
        for (offer, tracks) in request.offers.iter().enumerate() {
            let mut best: Option<((Duration, Reverse<u64>), Accepted)> = None;
            let mut short = Vec::new();
            for place in &placements {
                let candidate = match self.candidate(now, session, place, tracks, from_ms) {
                    Ok(candidate) => candidate,
                    Err(detail) => {
                        reason = detail;
                        continue;
                    }
                };
                match self.evaluate(&candidate) {
                    Ok(approval) => {
                        let room = self.room_left(candidate.disk(), approval.slack);
                        if best.as_ref().is_none_or(|(most, _)| room > *most) {
                            best = Some((room, candidate.accepted(approval)));
                        }
                    }
                    Err(shortfall) => short.push((candidate, shortfall)),
                }
            }
            if let Some((_, accepted)) = best {
                return Ok(Choice { offer, accepted, slots: 0 });
            }
            // Other streams give up read-ahead only where no placement fits without that.
            for (candidate, shortfall) in short {
                match self.evaluate_without_readahead(now, &candidate, shortfall) {
                    Ok(approval) => {
                        let accepted = candidate.accepted(approval);
                        return Ok(Choice { offer, accepted, slots: 0 });
                    }
                    Err(shortfall) => rejected.push(Rejected { offer, candidate, shortfall }),
                }
            }
        }
        Err(if rejected.is_empty() {
            Rejection::Unusable(reason)
        } else {
            Rejection::Short(rejected)
        })
    }

    // The order of placements: by slack, then by fewer bytes still to be read.
    fn room_left(&self, disk: usize, slack: Slack) -> (Duration, Reverse<u64>) {
        let state = &self.disks[disk];
        let each = self.config.slot / state.guard.min_read().max(1);
        let time = match slack {
            Slack::Time(time) => time,
            Slack::Reads(reads) => each.saturating_mul(u32::try_from(reads).unwrap_or(u32::MAX)),
            Slack::Unknown => Duration::ZERO,
        };
        (time, Reverse(state.dispatcher.books.unread()))
    }

    /// Times a track's pieces in all copies, where the disks' times are known: each piece takes the
    /// longest of its copies' times, so that it is booked alike wherever it is read. Where the
    /// times of one disk are unknown, no piece counts as read in one visit with the next.
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
        let costs = state.timings.costs.as_ref()?;
        if validate(track, state.guarantee.read_size.0).is_err() {
            return None;
        }
        Some(times(track, costs))
    }
}

// Whether a layout has the same pieces of the same title on another disk.
fn is_copy(first: &Layout, other: &Layout) -> bool {
    let alike = |(a, b): (&TrackLayout, &TrackLayout)| {
        a.bytes == b.bytes && a.piece == b.piece && a.due == b.due && a.stored == b.stored
    };
    first.title == other.title
        && first.disk != other.disk
        && first.tracks.len() == other.tracks.len()
        && first.tracks.iter().zip(&other.tracks).all(alike)
}
