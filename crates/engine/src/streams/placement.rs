//! Placement: which copy of a title a newcomer is read from, and which one takes over on a loss.
//!
//! ```text
//!   for each offer, best first
//!     for each placement (a copy on a disk that is there; where losses must be survived, with each
//!     other copy as its replica)          ── evaluate ──▶ fits, with this slack
//!     the placement with the most slack is taken; none fits ──▶ the next offer
//! ```

use super::Streams;
use super::intervals::own_bytes;
use crate::bookings::evaluate::{Accepted, Approval, Candidate, Shortfall};
use crate::pieces::{curve, validate};
use crate::stream::Stream;
use crate::{AdmitRequest, HandedSession, Layout, SessionId, TrackLayout, TrackNumber};
use scheduler::{PlayoutClock, SEND_WINDOW, Slack, sending_reserve};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// A copy that a title can be read from, and the disk with the copy that takes over.
#[derive(Clone, Debug)]
struct PlacementCandidate {
    layout: Arc<Layout>,
    replica: Option<usize>,
    /// All copies.
    copies: Arc<[Arc<Layout>]>,
}

impl Streams {
    /// The copies of a title that can stand for each other, the request's first.
    pub(crate) fn copies_of(&self, request: &AdmitRequest) -> Arc<[Arc<Layout>]> {
        let first = &request.layout;
        let alike = request.copies.iter().filter(|copy| is_copy(first, copy));
        std::iter::once(first).chain(alike).cloned().collect()
    }

    // The placements of a title, in the order of its copies.
    fn placements(&self, request: &AdmitRequest) -> Vec<PlacementCandidate> {
        let copies = self.copies_of(request);
        let live = |layout: &&Arc<Layout>| self.bookings.is_live(layout);
        let stays = |layout: &&Arc<Layout>| {
            live(layout) && !self.bookings.disks[usize::from(layout.disk.0)].draining
        };
        // A disk that is drained is read from only where there is no other copy.
        let any_stays = copies.iter().any(|layout| stays(&layout));
        let mut placements = Vec::new();
        for layout in
            copies.iter().filter(|layout| if any_stays { stays(layout) } else { live(layout) })
        {
            let others = copies.iter().filter(live).filter(|other| other.disk != layout.disk);
            let replicas: Vec<_> = others.map(|other| Some(usize::from(other.disk.0))).collect();
            let replicas = if self.bookings.survives_loss() { replicas } else { Vec::new() };
            // A title without another live copy is admitted all the same, and ends with its disk.
            for replica in if replicas.is_empty() { vec![None] } else { replicas } {
                let (layout, copies) = (Arc::clone(layout), Arc::clone(&copies));
                placements.push(PlacementCandidate { layout, replica, copies });
            }
        }
        placements
    }

    /// The first offer that fits, at the placement with the most slack; if none fits, all
    /// candidates. `drops_readahead`: other streams give up read-ahead where memory is short.
    pub(crate) fn choose_placement(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
        session: Beginning<'_>,
        drops_readahead: bool,
    ) -> Result<Choice, Rejection> {
        let placements = self.placements(request);
        let from_ms = u32::try_from(request.start.as_millis()).unwrap_or(u32::MAX);
        let mut rejected = Vec::new();
        let mut reason = "nothing was offered".to_owned();
        for (offer, tracks) in request.offers.iter().enumerate() {
            let mut candidates = Vec::with_capacity(placements.len());
            for place in &placements {
                match self.candidate(now, session, place, tracks, from_ms) {
                    Ok(candidate) => candidates.push(candidate),
                    Err(detail) => reason = detail,
                }
            }
            let short = match self.most_room(candidates) {
                Ok(accepted) => return Ok(Choice { offer, accepted, slots: 0 }),
                Err(short) => short,
            };
            // Other streams give up read-ahead only where no placement fits without that.
            for both in short {
                match self.evaluate_dropping(now, offer, both, drops_readahead) {
                    Ok(accepted) => return Ok(Choice { offer, accepted, slots: 0 }),
                    Err(short) => rejected.push(*short),
                }
            }
        }
        Err(if rejected.is_empty() {
            Rejection::Unusable(reason)
        } else {
            Rejection::Short(rejected)
        })
    }

    // Of the candidates that fit, the one that leaves the most room; if none fits, all of them.
    fn most_room(&mut self, candidates: Vec<Candidate>) -> Result<Accepted, Vec<ShortBothWays>> {
        let mut best: Option<((Duration, Reverse<u64>), Accepted)> = None;
        let mut short = Vec::new();
        for candidate in candidates {
            match self.evaluate_both_ways(candidate) {
                Ok(accepted) => {
                    let room = self.room_left(accepted.candidate.disk(), accepted.approval.slack);
                    if best.as_ref().is_none_or(|(most, _)| room > *most) {
                        best = Some((room, accepted));
                    }
                }
                Err(rejected) => short.push(*rejected),
            }
        }
        best.map(|(_, accepted)| accepted).ok_or(short)
    }

    // Evaluates a candidate that does not fit once more, with read-ahead of other streams dropped
    // where `drops_readahead`. If it still does not fit: what it lacks alone.
    fn evaluate_dropping(
        &mut self,
        now: Moment,
        offer: usize,
        both: ShortBothWays,
        drops_readahead: bool,
    ) -> Result<Accepted, Box<Rejected>> {
        let ShortBothWays { mut alone, shortfall, following } = both;
        let mut lacks_memory = shortfall.lacks_memory();
        if let Some((following, short)) = following {
            lacks_memory |= short.lacks_memory();
            if drops_readahead
                && let Ok(approval) = self.evaluate_without_readahead(now, &following, short)
            {
                return Ok(following.accepted(approval));
            }
            self.put_candidate(following);
        }
        let dropped = match drops_readahead {
            true => self.evaluate_with_less(now, &mut alone, shortfall),
            false => Err(shortfall),
        };
        match dropped {
            Ok(approval) => Ok(alone.accepted(approval)),
            Err(shortfall) => {
                Err(Box::new(Rejected { offer, candidate: alone, shortfall, lacks_memory }))
            }
        }
    }

    // Evaluates a candidate as a follower of viewers ahead and alone, first whichever is likely to
    // leave more room for others. If it fits neither way: both ways with their shortfalls.
    fn evaluate_both_ways(&mut self, mut alone: Candidate) -> Result<Accepted, Box<ShortBothWays>> {
        let Some(mut following) = self.following(&alone) else {
            if let Some(accepted) = self.evaluate_resident(&alone) {
                self.put_candidate(alone);
                return Ok(accepted);
            }
            return match self.evaluate_alone(&mut alone) {
                Ok(approval) => Ok(alone.accepted(approval)),
                Err(shortfall) => {
                    Err(Box::new(ShortBothWays { alone, shortfall, following: None }))
                }
            };
        };
        if let Some(approval) = self.evaluate_following_first(&alone, &mut following) {
            self.put_candidate(alone);
            return Ok(following.accepted(approval));
        }
        // Also where following comes first: what it lacks may be memory, which a stream of its own
        // needs less of.
        let shortfall = match self.evaluate_alone(&mut alone) {
            Ok(approval) => {
                self.put_candidate(following);
                return Ok(alone.accepted(approval));
            }
            Err(shortfall) => shortfall,
        };
        match self.evaluate(&following) {
            Ok(approval) => {
                self.put_candidate(alone);
                Ok(following.accepted(approval))
            }
            Err(short) => {
                let following = Some((following, short));
                Err(Box::new(ShortBothWays { alone, shortfall, following }))
            }
        }
    }

    /// The candidate of a seek as a follower of viewers ahead, where that fits and costs less than
    /// a stream of its own, or that does not fit.
    pub(crate) fn follow_if_better(&mut self, alone: &Candidate) -> Option<Accepted> {
        let mut following = self.following(alone)?;
        // That of the whole session, with the tracks in which it goes on.
        following.demand.reserve = alone.demand.reserve;
        let mut approval = self.evaluate_following_first(alone, &mut following);
        if approval.is_none() && self.evaluate(alone).is_err() {
            approval = self.evaluate(&following).ok();
        }
        if let Some(approval) = approval {
            return Some(following.accepted(approval));
        }
        self.put_candidate(following);
        None
    }

    // Evaluates a candidate with the leads of its tracks gathered; if it does not fit, without; if
    // memory is short, with less for its sockets, and where intervals have it, with one given up.
    fn evaluate_alone(&mut self, alone: &mut Candidate) -> Result<Approval, Shortfall> {
        let lacks_room = self.lacks_room(alone);
        let least = own_bytes(alone);
        if lacks_room {
            alone.demand.reserve = least_reserve(alone.demand.reserve);
        }
        let mut result = self.evaluate(alone);
        if result.is_err() && alone.gathers_leads() {
            self.bookings.gather_leads(alone, false);
            result = self.evaluate(alone);
        }
        match result {
            // Where read-ahead has the memory, no interval need be given up for it.
            Err(short) if short.lacks_memory() && lacks_room => {
                self.evaluate_giving_up(alone, least).ok_or(short)
            }
            Err(short) if short.lacks_memory() => {
                alone.demand.reserve = least_reserve(alone.demand.reserve);
                self.evaluate(alone)
            }
            result => result,
        }
    }

    /// Evaluates once more a candidate that memory is short for, with read-ahead of other streams
    /// dropped, and then with the longest interval given up.
    pub(crate) fn evaluate_with_less(
        &mut self,
        now: Moment,
        candidate: &mut Candidate,
        shortfall: Shortfall,
    ) -> Result<Approval, Shortfall> {
        let result = self.evaluate_without_readahead(now, candidate, shortfall);
        if !result.as_ref().is_err_and(Shortfall::lacks_memory) {
            return result;
        }
        let least = own_bytes(candidate);
        self.evaluate_giving_up(candidate, least).ok_or(shortfall)
    }

    /// A candidate is not used.
    pub(super) fn put_candidate(&mut self, candidate: Candidate) {
        self.bookings.put_demand(candidate.demand);
        candidate.sent.into_iter().for_each(|sent| self.bookings.put_demand(sent));
    }

    // The order of placements: by slack, then by fewer bytes still to be read.
    fn room_left(&self, disk: usize, slack: Slack) -> (Duration, Reverse<u64>) {
        let state = &self.bookings.disks[disk];
        // A slot holds more reads on one disk than on another, so slack is compared as time.
        let each = self.bookings.slot_length() / state.min_read().max(1);
        let time = match slack {
            Slack::Time(time) => time,
            Slack::Reads(reads) => each.saturating_mul(u32::try_from(reads).unwrap_or(u32::MAX)),
            Slack::Unknown => Duration::ZERO,
        };
        (time, Reverse(state.dispatcher.books.unread()))
    }

    // The streams of one offer at one placement, and their demand; or why it cannot be served.
    fn candidate(
        &mut self,
        now: Moment,
        session: Beginning<'_>,
        place: &PlacementCandidate,
        tracks: &[TrackNumber],
        from_ms: u32,
    ) -> Result<Candidate, String> {
        let PlacementCandidate { layout, replica, copies } = place;
        let timing = self.bookings.playout_clock(now, from_ms, *replica);
        let disk = usize::from(layout.disk.0);
        let read_size = self.bookings.disks[disk].guarantee.read_size.0;
        // Also the tracks that are not offered: a session may switch to any of them.
        for (number, track) in layout.tracks.iter().enumerate() {
            // Also copies on lost disks: a disk may come back, and be a replica then.
            match self.bookings.survives_loss() {
                false => self.bookings.time_track(disk, track),
                true => self.bookings.time_copies(copies, number),
            }
        }
        let mut streams: Vec<Stream> = Vec::with_capacity(tracks.len());
        for number in tracks {
            let Some(track) = layout.tracks.get(usize::from(*number)) else {
                return Err(format!("there is no track {number}"));
            };
            validate(track, read_size)
                .map_err(|error| format!("track {number} cannot be served: {error}"))?;
            // An offer that names a track twice must not book it twice.
            if streams.iter().all(|stream| stream.track != *number) {
                let Some(mut stream) = begun(session, layout, *number, timing) else { continue };
                stream.replica = *replica;
                if let Beginning::New(_) = session {
                    stream.gather_lead(self.bookings.gathers(disk));
                }
                streams.push(stream);
            }
        }
        if streams.is_empty() {
            return Err("an offer without tracks".to_owned());
        }
        let (layout, copies) = (layout.clone(), Arc::clone(copies));
        let demand = self.bookings.demand_of(&mut streams, reserve_for(&layout, tracks));
        let (replica, sent, is_new) = (*replica, None, true);
        let gives_up = None;
        Ok(Candidate { layout, replica, copies, streams, demand, sent, is_new, gives_up })
    }
}

// The stream of a track at the beginning of its session; `None` where it has none.
fn begun(
    session: Beginning<'_>,
    layout: &Arc<Layout>,
    track: TrackNumber,
    timing: PlayoutClock,
) -> Option<Stream> {
    match session {
        Beginning::New(session) => {
            let first = curve(&layout.tracks[usize::from(track)]).first_needed(timing.from_ms);
            Some(Stream::new(session, layout.clone(), track, timing, first))
        }
        Beginning::TakenOver(state) => {
            let of = state.streams.iter().find(|stream| stream.track == track)?;
            Some(Stream::taken_over(state, of, layout.clone(), timing))
        }
    }
}

// Whether a layout has the same pieces of the same title on another disk.
fn is_copy(first: &Layout, other: &Layout) -> bool {
    // A session continues on another copy by the number of a piece, so all cuts must be equal.
    let alike = |(a, b): (&TrackLayout, &TrackLayout)| {
        (a.bytes, a.piece, a.lead) == (b.bytes, b.piece, b.lead)
            && a.due == b.due
            && a.stored == b.stored
    };
    first.title == other.title
        && first.disk != other.disk
        && first.tracks.len() == other.tracks.len()
        && first.tracks.iter().zip(&other.tracks).all(alike)
}

/// How a session begins that a candidate is made for.
#[derive(Clone, Copy)]
pub(crate) enum Beginning<'a> {
    /// From the beginning, with this id.
    New(SessionId),
    /// Where another engine had it.
    TakenOver(&'a HandedSession),
}

/// The offer that is accepted, with its session beginning `slots` later than now.
pub(crate) struct Choice {
    pub(crate) offer: usize,
    pub(crate) accepted: Accepted,
    pub(crate) slots: u32,
}

// A candidate that fits neither alone nor as a follower, where it can be one.
struct ShortBothWays {
    alone: Candidate,
    shortfall: Shortfall,
    following: Option<(Candidate, Shortfall)>,
}

/// Why no offer fits at once.
pub(crate) enum Rejection {
    /// No offer can be served whatever is booked, for this reason.
    Unusable(String),
    /// Each has too little of something. At least one.
    Short(Vec<Rejected>),
}

/// A candidate that does not fit, and the offer that it is of.
pub(crate) struct Rejected {
    pub(crate) offer: usize,
    pub(crate) candidate: Candidate,
    pub(crate) shortfall: Shortfall,
    /// Whether it lacks memory, alone or as a follower: a full disk may have room for a follower.
    pub(crate) lacks_memory: bool,
}

/// What is left of a reserve if each socket is given one piece at a time: the next piece is in
/// memory until its release, so that this costs nothing but a pause between the two.
pub(crate) fn least_reserve(reserve: u64) -> u64 {
    reserve / SEND_WINDOW
}

/// Memory that the sockets of a session with these tracks may use.
pub(crate) fn reserve_for(layout: &Layout, tracks: &[TrackNumber]) -> u64 {
    sending_reserve(tracks.iter().map(|track| layout.tracks[usize::from(*track)].piece))
}
