//! Extensions: a session of a title that is still being recorded goes on with more of it.
//!
//! ```text
//!   pieces   first ....... cursor ....... end │ new ......... end
//!            delivered     held, unread       │ unread, due by the same clock
//! ```
//!
//! A session that follows another one goes on following: what the feed reads gets longer with it
//! (`streams::feeds`). Where that does not fit, or its schedule has to move, it is read for alone.
//!
//! What is booked stays: the same pieces at the same places, due at the same moments. The new
//! pieces are admitted as those of a newcomer are, all or nothing, so that whatever a session knows
//! of is guaranteed. Its requests that are under way notice nothing.
//!
//! A player that has come to the end before there was more, or before it was extended, has nothing
//! to show and waits. What is new is due for it when it would be for a newcomer: its schedule moves
//! later. Pictures and sound are kept for the same time longer; the deadlines of each move only as
//! far as they must, because their clocks differ after a seek.

use super::departure::GiveWay;
use super::pieces::validate;
use super::{Engine, Layout, Resource, SessionId, TrackLayout};
use scheduler::Shortage;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

impl Engine {
    /// Books the pieces that a session's layout does not have yet; returns the time by which its
    /// schedule moves later.
    pub(super) fn extend_session(
        &mut self,
        now: Moment,
        id: SessionId,
        layout: Arc<Layout>,
    ) -> Result<Duration, Shortage> {
        let slot = self.streams.bookings.slot().next();
        let unusable = Shortage { resource: Resource::Disk, slot, missing: 1 };
        let session = self.sessions.get(&id).ok_or(unusable)?;
        let (placement, ids) = (session.placement(), session.streams.clone());
        let bookings = &self.streams.bookings;
        let read_size = bookings.disks[placement.disk].guarantee.read_size.0;
        let is_sound = |track: &TrackLayout| validate(track, read_size).is_ok();
        if !continues(&session.layout, &layout) || !layout.tracks.iter().all(is_sound) {
            return Err(unusable);
        }
        layout.tracks.iter().for_each(|track| bookings.time_track(placement.disk, track));
        let earliest = now + self.config.startup;
        if self.streams.lengthen_with_feeds(now, placement, &ids, &layout, earliest) {
            self.streams.accounts.counters.extended += 1;
            let session = &mut self.sessions[&id];
            session.copies = Arc::from([Arc::clone(&layout)]);
            session.layout = layout;
            return Ok(Duration::ZERO);
        }
        let streams = self.streams.begin_lengthening(now, &ids, &layout, earliest);
        let later = self.config.slot * streams.slots;
        let approval = self.streams.evaluate_demand(placement, &streams.demand).or_else(|short| {
            let short_of = [(placement, short.shortage.resource)];
            let give_way = GiveWay::for_shortfalls(short_of).except(id);
            let fits =
                |engine: &mut Self| engine.streams.evaluate_demand(placement, &streams.demand).ok();
            self.fit_in_place_of_others(now, &give_way, fits).ok_or(short)
        });
        match approval {
            Ok(approval) => {
                self.streams.end_lengthening(now, streams, approval);
                self.streams.accounts.counters.extended += 1;
            }
            Err(short) => {
                self.streams.give_up_lengthening(streams);
                self.streams.accounts.counters.extensions_refused += 1;
                return Err(short.shortage);
            }
        }
        let session = &mut self.sessions[&id];
        session.copies = Arc::from([Arc::clone(&layout)]);
        session.layout = layout;
        Ok(later)
    }
}

impl TrackLayout {
    /// Whether a track is the same with the same pieces, and perhaps more.
    pub(super) fn is_continued_by(&self, longer: &Self) -> bool {
        let is_whole = self.bytes.is_multiple_of(self.piece.into());
        (self.piece, self.lead, self.key_frames_of)
            == (longer.piece, longer.lead, longer.key_frames_of)
            && (self.bytes == longer.bytes || (is_whole && self.bytes < longer.bytes))
            && longer.due.starts_with(&self.due)
    }
}

/// Whether `after` is the same title at the same place with the same pieces, and perhaps more.
fn continues(before: &Layout, after: &Layout) -> bool {
    let is_longer = |(before, after): (&TrackLayout, &TrackLayout)| {
        before.stored.is_empty() && after.stored.is_empty() && before.is_continued_by(after)
    };
    (before.title, before.disk) == (after.title, after.disk)
        && before.tracks.len() == after.tracks.len()
        && before.tracks.iter().zip(&after.tracks).all(is_longer)
}
