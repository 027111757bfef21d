//! The transport stream of a playback: its units in order, and the bytes that they are made from.
//!
//! ```text
//!   video bytes ─┐
//!   sound bytes ─┴─▶ unit due next ──▶ packets
//! ```
//! Units go out in one order, so that one whose bytes are missing holds up all behind it: the clock
//! must not run ahead of what it is for.

use super::track_bytes::{Taken, TrackBytes};
use media::{Packaging, TransportCounters, TransportPush, TransportUnit};
use units::MediaTime;

/// A transport stream that is being sent.
#[derive(Debug)]
pub(super) struct Multiplex {
    push: TransportPush,
    tracks: Vec<TrackBytes>,
    next: Option<TransportUnit>,
    /// Units from this time on are not sent.
    stop: Option<MediaTime>,
    /// The continuity counters behind what has been sent.
    sent: TransportCounters,
}

impl Multiplex {
    /// The stream that a track leads from a position on; `None`: it has no form there.
    pub(super) fn new(
        packaging: &Packaging,
        lead: u16,
        from: MediaTime,
        stop: Option<MediaTime>,
        counters: TransportCounters,
    ) -> Option<Self> {
        let push = packaging.transport_push(lead, from, counters)?;
        let bytes_of = |(track, first): (u16, u64)| {
            let end = stop.map_or_else(
                || packaging.index().tracks[usize::from(track)].data_len,
                |stop| packaging.bytes_before(track, stop + TOGETHER),
            );
            TrackBytes::new(track, first..end.max(first))
        };
        let tracks = push.first_bytes(packaging).into_iter().map(bytes_of).collect();
        let mut multiplex = Self { push, tracks, next: None, stop, sent: counters };
        multiplex.load(packaging);
        Some(multiplex)
    }

    pub(super) fn tracks(&self) -> &[TrackBytes] {
        &self.tracks
    }

    pub(super) fn tracks_mut(&mut self) -> &mut [TrackBytes] {
        &mut self.tracks
    }

    /// The continuity counters to go on with.
    pub(super) fn counters(&self) -> TransportCounters {
        self.sent
    }

    /// When the next unit is due; `None` at the end.
    pub(super) fn due(&self) -> Option<MediaTime> {
        self.next.as_ref().map(|unit| unit.at)
    }

    /// Whether the bytes of the next unit are here.
    pub(super) fn has_next(&self) -> bool {
        self.next.as_ref().is_some_and(|unit| self.tracks[unit.stream].has(size(unit)))
    }

    /// Gives back pieces that hold only a part of the next unit.
    pub(super) fn gather(&mut self) -> Vec<Taken> {
        match &self.next {
            Some(unit) => self.tracks[unit.stream].gather(size(unit)),
            None => Vec::new(),
        }
    }

    /// Passes the packets of the next unit, whose bytes are here, to `send`.
    pub(super) fn send(&mut self, packaging: &Packaging, send: impl FnOnce(&[u8])) -> Vec<Taken> {
        let Some(unit) = self.next.take() else { return Vec::new() };
        let mut packets = Vec::new();
        let mut taken = Vec::new();
        if unit.bytes.is_empty() {
            packets = unit.packets(&[]);
        } else {
            let size = usize::try_from(size(&unit)).unwrap_or(usize::MAX);
            taken = self.tracks[unit.stream].take(size, |bytes| packets = unit.packets(bytes));
        }
        self.sent = self.push.counters();
        send(&packets);
        self.load(packaging);
        taken.extend(self.gather());
        taken
    }

    fn load(&mut self, packaging: &Packaging) {
        let next = self.push.next(packaging);
        self.next = next.filter(|unit| self.stop.is_none_or(|stop| unit.at < stop));
    }
}

fn size(unit: &TransportUnit) -> u64 {
    unit.bytes.end - unit.bytes.start
}

/// More than the frames of sound in one unit last.
const TOGETHER: MediaTime = MediaTime(1_000_000_000);
