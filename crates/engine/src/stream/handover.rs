//! A stream that goes on in another engine. See `engine::handover`.

use super::Stream;
use crate::pieces::curve;
use crate::{HandedSession, HandedStream, Layout, TrackLayout};
use scheduler::PlayoutClock;
use std::sync::Arc;

impl Stream {
    /// The stream as another engine can go on with it.
    pub(crate) fn state(&self) -> HandedStream {
        let track = &self.layout.tracks[usize::from(self.track)];
        let clock = self.clock();
        let start = |piece| curve(track).start(piece).min(track.bytes);
        HandedStream {
            track: self.track,
            origin: clock.origin,
            opens_after: clock.opens_after,
            from_ms: clock.from_ms,
            kept_from_ms: kept_from_ms(&clock),
            position: start(self.position),
            counted: start(self.cursor),
            ends: self.ends.iter().copied().collect(),
            bytes: track.bytes,
            parts: parts(track),
        }
    }

    /// A stream of a session that another engine had, from its player's next bytes on. `timing`: a
    /// clock of this engine, for its start-up and its slots.
    pub(crate) fn taken_over(
        session: &HandedSession,
        of: &HandedStream,
        layout: Arc<Layout>,
        timing: PlayoutClock,
    ) -> Self {
        let (from_ms, kept_from_ms) = (of.from_ms, of.kept_from_ms);
        let (origin, opens_after) = (of.origin, of.opens_after);
        let timing = PlayoutClock { origin, opens_after, from_ms, kept_from_ms, ..timing };
        let curve = curve(&layout.tracks[usize::from(of.track)]);
        // The last piece may be shorter than the others: the end is in none.
        let piece_at = |byte: u64| match byte < of.bytes {
            true => curve.piece_at(byte),
            false => curve.pieces(),
        };
        let (first, counted) = (piece_at(of.position), piece_at(of.counted));
        Self {
            ends: of.ends.iter().copied().collect(),
            accounted: (first..counted).collect(),
            last_activity: session.last_activity,
            ..Self::new(session.session, layout, of.track, timing, first)
        }
    }
}

impl HandedStream {
    /// Whether its bytes are those of this layout.
    pub(crate) fn is_of(&self, layout: &Layout) -> bool {
        let track = layout.tracks.get(usize::from(self.track));
        track.is_some_and(|track| (track.bytes, parts(track)) == (self.bytes, self.parts))
    }
}

// The media time from which buffers are kept as long, or from the beginning of the title.
fn kept_from_ms(clock: &PlayoutClock) -> u32 {
    let longer = clock.slot.saturating_mul(clock.kept_longer).as_millis();
    clock.kept_from_ms.saturating_sub(u32::try_from(longer).unwrap_or(u32::MAX))
}

// Bytes of a piece where those in the engine's count depend on it.
fn parts(track: &TrackLayout) -> u32 {
    if track.stored.is_empty() { 0 } else { track.piece }
}
