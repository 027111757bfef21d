//! Jumps: a player goes on where nothing is booked for it. It has sought, switched to another
//! track, left something out, or come back after giving everything back.
//!
//! Decided on the books without its old booking; refused, the old booking is as it was.

use super::door::{Booking, reserve_for};
use super::sessions::{Next, Session};
use super::streams::{Stream, StreamId, curve, unsound};
use super::{Engine, Layout, Refusal, SessionId, TrackNumber};
use scheduler::Timing;
use units::Moment;

impl Engine {
    /// Asks anew for a track of a session, from `next` on.
    ///
    /// The engine knows what is asked for, not what is shown: a viewer who seeks into the middle
    /// of a segment needs the following one so much sooner. So it is asked first as if the
    /// segment were over already, and only if that does not fit, as if it were shown whole.
    pub(super) fn rebook(&mut self, now: Moment, id: SessionId, next: Next) -> Result<(), Refusal> {
        let session = &self.sessions[&id];
        let layout = session.layout.clone();
        if let Some(reason) = self.cannot_serve(&layout, next.track) {
            return Err(self.never(reason));
        }
        let track = &layout.tracks[usize::from(next.track)];
        let curve = curve(track);
        let piece = u32::try_from(next.offset / u64::from(track.piece)).unwrap_or(u32::MAX);
        // Only pieces' first bytes have times. In the middle of one, the time is not before that
        // of the next: taken too early, it would make all deadlines too late.
        let inside = !next.offset.is_multiple_of(u64::from(track.piece));
        let here = curve.due(if inside { piece.saturating_add(1) } else { piece });
        let after = curve.due.partition_point(|due| *due <= here);
        let after = curve.due.get(after).copied().unwrap_or(here);
        let tracks = tracks_after(session, next.track);
        let reserve = reserve_for(&layout, &tracks);
        let booking = |engine: &Self, from_ms| {
            let timing = Timing { kept_from_ms: here, ..engine.timing(now, from_ms) };
            let stream = Stream::new(id, layout.clone(), next.track, timing, piece);
            Booking { layout: layout.clone(), streams: vec![stream], reserve }
        };
        let bookings = [booking(self, after), booking(self, here)];
        self.exchange(now, id, tracks, bookings)
    }

    fn cannot_serve(&self, layout: &Layout, track: TrackNumber) -> Option<String> {
        let read_size = self.disks[usize::from(layout.disk.0)].guarantee.read_size.0;
        let reason = unsound(&layout.tracks[usize::from(track)], read_size)?;
        Some(format!("track {track} cannot be served: {reason}"))
    }

    // Old booking out, the first of the new ones that fits in, or everything as it was.
    fn exchange(
        &mut self,
        now: Moment,
        id: SessionId,
        tracks: Vec<TrackNumber>,
        bookings: [Booking; 2],
    ) -> Result<(), Refusal> {
        let disk = usize::from(bookings[0].layout.disk.0);
        let asked = bookings[0].streams[0].track;
        let session = &self.sessions[&id];
        let gone = |stream: &StreamId| {
            let track = self.streams[stream].track;
            track == asked || !tracks.contains(&track)
        };
        let old: Vec<StreamId> = session.streams.iter().copied().filter(gone).collect();
        let (old_reserve, unsent) = (session.reserve, session.unsent);
        let aside: Vec<(StreamId, Stream)> =
            old.iter().map(|id| (*id, self.remove_stream(*id))).collect();
        self.disks[disk].books.unreserve(old_reserve);
        let mut refused = None;
        for mut booking in bookings {
            // What its sockets hold stays kept aside, whatever tracks it goes on with.
            booking.reserve = booking.reserve.max(unsent);
            if let Err(shortage) = self.decide(now, &mut booking) {
                refused = Some((booking, shortage));
                continue;
            }
            self.disks[disk].books.reserve(booking.reserve);
            let session = self.sessions.get_mut(&id).expect("live");
            (session.reserve, session.tracks) = (booking.reserve, tracks);
            session.streams.retain(|stream| !old.contains(stream));
            aside.into_iter().for_each(|(_, stream)| self.settle(now, stream));
            self.add_decided(booking.streams);
            // Its other requests may have waited for what is no longer on the books.
            self.to_serve.push(id);
            return Ok(());
        }
        let (booking, shortage) = refused.expect("neither fitted");
        let refusal = self.refusal(now, &booking, shortage);
        self.disks[disk].books.reserve(old_reserve);
        aside.into_iter().for_each(|(id, stream)| self.insert_stream(id, stream));
        Err(refusal)
    }

    /// Counts what a stream that is off the books still owed, and lets go of its buffers.
    pub(super) fn settle(&mut self, now: Moment, stream: Stream) {
        let unread = (stream.cursor..stream.end).map(|piece| stream.deadline(piece));
        let owed = stream.uncounted().chain(unread.take_while(|deadline| *deadline < now));
        for deadline in owed.filter(|deadline| *deadline < now) {
            self.count_for(now, stream.session, deadline);
        }
        for (read, _) in stream.held() {
            self.buffers.unpin(read);
        }
    }
}

// The tracks of a session that goes on with `track`: it replaces those it was never offered
// together with (another rendition of the picture), and joins the others.
fn tracks_after(session: &Session, track: TrackNumber) -> Vec<TrackNumber> {
    let current = &session.tracks;
    if current.contains(&track) {
        return current.clone();
    }
    let together = |offer: &&Vec<TrackNumber>| current.iter().filter(|t| offer.contains(t)).count();
    let offers = session.offers.iter().filter(|offer| offer.contains(&track));
    match offers.max_by_key(together) {
        Some(offer) => {
            let stay = current.iter().copied().filter(|track| offer.contains(track));
            stay.chain([track]).collect()
        }
        None => current.iter().copied().chain([track]).collect(),
    }
}
